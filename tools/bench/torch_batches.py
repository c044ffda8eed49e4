"""Batches of PyTorch tensors from sentences of ids."""
import itertools
import math

import torch

BOS, EOS = 1, 2


def padded(rows, padding=0):
    width = max(map(len, rows))
    return torch.tensor([row + [padding] * (width - len(row)) for row in rows])


def padding_mask(rows):
    """[batch, 1, 1, length]: 0 at tokens, minus infinity at padding; None without padding."""
    lengths = torch.tensor([len(row) for row in rows])
    if lengths.min() == lengths.max():
        return None
    absent = torch.arange(int(lengths.max())) >= lengths[:, None]
    return torch.zeros(absent.shape).masked_fill_(absent, -math.inf)[:, None, None, :]


class Batch:
    """Sentences as tensors; what is no token is known by position, so that padding needs no id of the vocabulary."""

    def __init__(self, source, target):
        self.source, self.source_mask = padded(source), padding_mask(source)
        self.target = padded([[BOS] + row[:-1] for row in target])
        labels = padded(target, padding=-1).flatten()
        self.real = (labels >= 0).nonzero().flatten()
        self.labels = labels[self.real]
        length = self.target.shape[1]
        self.causal_mask = torch.full((length, length), -math.inf).triu_(1)
        self.tokens = sum(map(len, source)) + len(self.labels)
        self.places = self.source.numel() + self.target.numel()


def padding_order(pair):
    """Neighbours in this order are alike in the longer side, then in the difference of the sides, which alternates
    between rising and falling."""
    source, target = map(len, pair)
    longer = max(source, target)
    return longer, (source - target) * (-1) ** longer


def repack(groups):
    """The sentences of all `groups` of (source, target) in as many new ones, of about as many target tokens each and
    with little padding."""
    pairs = sorted(itertools.chain.from_iterable(groups), key=padding_order)
    total = sum(len(target) for _, target in pairs)
    result, tokens = [[] for _ in groups], 0
    for pair in pairs:
        result[tokens * len(groups) // total].append(pair)
        tokens += len(pair[1])
    return [group for group in result if group]
