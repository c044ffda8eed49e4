"""Greedy and beam search with cached keys and values, in PyTorch."""
import math

import torch
from torch.nn import functional as F

from torch_batches import BOS, EOS, padded, padding_mask


def length_penalty(kind, exponent, lengths):
    return {"none": lambda: torch.ones_like(lengths), "wu": lambda: ((5 + lengths) / 6) ** exponent,
            "length": lambda: lengths**exponent}[kind]()


@torch.no_grad()
def translate(model, source, beam, limits, penalty):
    """The best hypothesis' ids for each sentence, end included. A finished hypothesis goes on with end tokens of
    log-probability 0; a sentence leaves the batch once all of its hypotheses are finished."""
    source_mask = padding_mask(source)
    keys_values = model.keys_values(model.encode(padded(source), source_mask))
    caches = [{} for _ in model.decoder]
    waiting = torch.arange(len(source))  # sentences still in the batch
    hypotheses = torch.full((len(source), beam, 1), BOS)
    scores = torch.full((len(source), beam), -math.inf)
    scores[:, 0] = 0
    finished = torch.zeros((len(source), beam), dtype=torch.bool)
    lengths = torch.zeros((len(source), beam))
    limits = torch.tensor(limits)
    best = [None] * len(source)
    step = 0
    while len(waiting):
        x = model.decode(hypotheses[:, :, -1].reshape(-1, 1), keys_values, source_mask, caches=caches, start=step)
        log_p = F.log_softmax(model.logits(x[:, 0]), -1).view(len(waiting), beam, -1)
        log_p[:, :, BOS] = -math.inf
        log_p[finished] = -math.inf
        log_p[:, :, EOS].masked_fill_(finished, 0)
        scores, index = (scores[:, :, None] + log_p).flatten(1).topk(beam)
        parent, token = torch.div(index, log_p.shape[-1], rounding_mode="floor"), index % log_p.shape[-1]
        step += 1
        lengths = lengths.gather(1, parent) + ~finished.gather(1, parent)
        finished = finished.gather(1, parent) | (token == EOS)
        hypotheses = hypotheses.gather(1, parent[:, :, None].expand(-1, -1, step))
        hypotheses = torch.cat([hypotheses, token[:, :, None]], 2)

        done = finished.all(1) | (limits[waiting] <= step) | (step >= model.shape.max_length)
        for row in done.nonzero().flatten().tolist():
            top = int((scores[row] / length_penalty(*penalty, lengths[row])).argmax())
            best[int(waiting[row])] = hypotheses[row, top, 1 : 1 + int(lengths[row, top])].tolist()
        rows = torch.arange(len(waiting))[:, None] * beam + parent
        if done.any():
            keep = (~done).nonzero().flatten()
            rows, waiting = rows[keep], waiting[keep]
            hypotheses, scores, finished, lengths = (t[keep] for t in (hypotheses, scores, finished, lengths))
            keys_values = [tuple(t[keep] for t in pair) for pair in keys_values]
            source_mask = None if source_mask is None else source_mask[keep]
        if beam > 1 or done.any():
            for cache in caches:
                for name in cache:
                    cache[name] = cache[name].index_select(0, rows.flatten())
    return best
