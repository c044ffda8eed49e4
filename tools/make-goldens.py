#!/usr/bin/python3
"""Writes tests/data/golden_*.h5: what PyTorch computes, in double precision, for tests to compare with.

Usage: tools/make-goldens.py [FOLDER]      (default: tests/data; needs python3-torch, python3-h5py, python3-numpy)

golden_ops.h5     one group an op:   inputs and their names as in the op's docstring, y, dy, gradients/<input>
golden_layers.h5  one group a layer: parameters/<path>, x, memory, lengths, memory_lengths, y, dy,
                  gradients/{x,memory,<path>}
golden_models.h5  one group a model: parameters/<path>; batches/<i>/{source,target_input,target_output,
                  source_lengths,target_lengths,log_probabilities,loss,gradients/<path>}; adam_losses, the loss per token before each of 10 updates
                  that take the batches in turn. Attributes are settings, named as in the configuration.

Rows are packed: the sentences of a batch end to end, without the padding that PyTorch's modules see.
"""
import math
import os
import sys

import h5py
import torch
from torch import nn
from torch.nn import functional as F

BOS, EOS = 1, 2
EPS = 0.1  # label smoothing of models
ACTIVATIONS = {"none": lambda x: x, "relu": F.relu, "gelu": F.gelu, "swish": F.silu}


def random(*shape, scale=1.0):
    return (torch.randn(*shape) * scale).requires_grad_()


def write(group, name, value):
    group[name] = value.detach().numpy() if isinstance(value, torch.Tensor) else value


def pack(x, lengths):
    """[sentences, longest, ...] -> [rows, ...]"""
    return torch.cat([x[i, :n] for i, n in enumerate(lengths)])


def pad(rows, lengths):
    """[rows, ...] -> [sentences, longest, ...]"""
    return nn.utils.rnn.pad_sequence(torch.split(rows, lengths), batch_first=True)


def padding(lengths):
    """True where a row is padding, [sentences, longest]."""
    return torch.arange(max(lengths))[None] >= torch.tensor(lengths)[:, None]


def causal(n):
    return torch.full((n, n), -math.inf).triu(1)


def write_gradients(group, y, dy, variables):
    names = list(variables)
    gradients = torch.autograd.grad(y, [variables[n] for n in names], dy)
    for name, gradient in zip(names, gradients):
        write(group, "gradients/" + name, gradient)


def write_op(file, case, y, variables, **constants):
    group = file.create_group(case)
    dy = torch.randn_like(y)
    for name, value in {**variables, **constants, "y": y, "dy": dy}.items():
        write(group, name, value)
    write_gradients(group, y, dy, variables)
    return group


# ---- ops


def weights_of(q, k, heads, bias):
    """One sentence: q [n, h·d_k], k [m, h·d_k], bias [n, m] -> [h, n, m]."""
    split = lambda x: x.reshape(x.shape[0], heads, -1).transpose(0, 1)
    q, k = split(q), split(k)
    return torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]) + bias, dim=-1)


def attend(q, k, v, heads, bias):
    """One sentence: q [n, h·d_k], k [m, h·d_k], v [m, h·d_v], bias [n, m] -> [n, h·d_v]."""
    split = lambda x: x.reshape(x.shape[0], heads, -1).transpose(0, 1)
    return (weights_of(q, k, heads, bias) @ split(v)).transpose(0, 1).reshape(q.shape[0], -1)


def write_attention(file, case, heads, d_k, d_v, queries, keys, is_causal=False, with_mask=False):
    q, k, v = random(sum(queries), heads * d_k), random(sum(keys), heads * d_k), random(sum(keys), heads * d_v)
    mask = torch.zeros(sum(queries), max(keys))
    if with_mask:
        mask = torch.randn_like(mask)
        mask[torch.rand_like(mask) < 0.3] = -math.inf
        mask[:, 0] = 0.5  # no row is forbidden whole
    outputs = []
    rows = zip(q.split(queries), k.split(keys), v.split(keys), mask.split(queries))
    for qs, ks, vs, ms in rows:
        bias = ms[:, : len(ks)]
        if is_causal:
            bias = bias + torch.full((len(qs), len(ks)), -math.inf).triu(1 + len(ks) - len(qs))
        outputs.append(attend(qs, ks, vs, heads, bias))
    group = write_op(file, case, torch.cat(outputs), {"q": q, "k": k, "v": v}, query_lengths=queries, key_lengths=keys)
    if with_mask:
        write(group, "mask", mask)
    group.attrs["heads"], group.attrs["causal"] = heads, int(is_causal)


def write_head_cosine(file):
    heads, x = 3, random(5, 12)
    parts = x.split(4, dim=1)
    pairs = [F.cosine_similarity(a, b, dim=1).sum() for a in parts for b in parts]
    group = write_op(file, "head_cosine", (sum(pairs) / heads ** 2).reshape(1), {"x": x})
    group.attrs["heads"] = heads


def write_attention_overlap(file, case, heads, d_k, queries, keys, is_causal=False):
    q, k, total = random(sum(queries), heads * d_k), random(sum(keys), heads * d_k), 0
    for qs, ks in zip(q.split(queries), k.split(keys)):
        mask = torch.full((len(qs), len(ks)), -math.inf).triu(1 + len(ks) - len(qs)) if is_causal else 0
        weights = weights_of(qs, ks, heads, mask)
        total = total + sum((a * b).sum() for a in weights for b in weights) / heads ** 2
    group = write_op(file, case, total.reshape(1), {"q": q, "k": k}, query_lengths=queries, key_lengths=keys)
    group.attrs["heads"], group.attrs["causal"] = heads, int(is_causal)


def check_attend():
    """attend() is PyTorch's own multi-head attention."""
    d, h, n, m = 6, 3, 4, 5
    q, k, v, identity = torch.randn(n, d), torch.randn(m, d), torch.randn(m, d), torch.eye(d)
    theirs, _ = F.multi_head_attention_forward(
        q[:, None], k[:, None], v[:, None], d, h, None, None, None, None, False, 0.0, identity, torch.zeros(d),
        use_separate_proj_weight=True, q_proj_weight=identity, k_proj_weight=identity, v_proj_weight=identity)
    torch.testing.assert_close(attend(q, k, v, h, torch.zeros(n, m)), theirs[:, 0])


def write_ops(file):
    check_attend()
    ids, weight = torch.tensor([3, 0, 3, 6, 1]), random(7, 4)
    write_op(file, "embedding", 2.5 * F.embedding(ids, weight), {"weight": weight}, ids=ids.int(), scale=2.5)
    for name, f in ACTIVATIONS.items():
        x, weight, bias = random(5, 4), random(3, 4), random(3)
        write_op(file, "linear_" + name, f(F.linear(x, weight, bias)), {"x": x, "weight": weight, "bias": bias})
    x, weight = random(5, 4), random(3, 4)
    write_op(file, "linear_without_bias", F.linear(x, weight), {"x": x, "weight": weight})
    x, gamma, beta = random(6, 5, scale=3), random(5), random(5)
    write_op(file, "layer_norm", F.layer_norm(x, (5,), gamma, beta, 1e-5), {"x": x, "gamma": gamma, "beta": beta})
    x = random(4, 7, scale=5)
    write_op(file, "softmax", torch.softmax(x, -1), {"x": x})
    write_op(file, "log_softmax", torch.log_softmax(x, -1), {"x": x})
    for smoothing in (0.0, 0.1):
        x, weight, bias, targets = random(6, 4), random(9, 4), random(9), torch.tensor([2, 8, 0, 5, 5, 1])
        logits = F.linear(x, weight, bias)
        loss = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum").reshape(1)
        write_op(file, "cross_entropy_smoothed" if smoothing else "cross_entropy", loss,
                 {"x": x, "weight": weight, "bias": bias}, targets=targets.int(), label_smoothing=smoothing,
                 token_loss=F.cross_entropy(logits, targets, reduction="none"))
    write_attention(file, "attention_self", 2, 3, 3, [4, 1, 3], [4, 1, 3])
    write_attention(file, "attention_causal", 2, 3, 2, [4, 1, 5], [4, 1, 5], is_causal=True)
    write_attention(file, "attention_causal_longer_keys", 3, 2, 2, [2, 1], [5, 4], is_causal=True)
    write_attention(file, "attention_cross", 4, 2, 3, [2, 5, 1], [3, 2, 6])
    write_attention(file, "attention_mask", 2, 4, 4, [3, 4], [5, 2], with_mask=True)
    write_attention(file, "attention_long", 1, 2, 2, [40, 2], [300, 270])
    write_head_cosine(file)
    write_attention_overlap(file, "attention_overlap_self", 3, 2, [4, 1, 3], [4, 1, 3], is_causal=True)
    write_attention_overlap(file, "attention_overlap_cross", 2, 3, [2, 40], [3, 36])


# ---- layers and models; `paths` maps our names to functions of a module's tensors


def linear_paths(path, module):
    return {path + "/weight": module.weight, path + "/bias": module.bias}


def norm_paths(path, module):
    return {path + "/gamma": module.weight, path + "/beta": module.bias}


class Attention(nn.Module):
    """nn.MultiheadAttention's function with its three projections as parameters of their own."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))
        self.batch_first = True

    def forward(self, query, key, value, attn_mask=None, key_padding_mask=None, need_weights=False):
        q, k, v = (x.transpose(0, 1) for x in (query, key, value))
        y, _ = F.multi_head_attention_forward(
            q, k, v, q.shape[-1], self.heads, None, torch.cat([self.query.bias, self.key.bias, self.value.bias]),
            None, None, False, 0.0, self.output.weight, self.output.bias, key_padding_mask=key_padding_mask,
            need_weights=False, attn_mask=attn_mask, use_separate_proj_weight=True, q_proj_weight=self.query.weight,
            k_proj_weight=self.key.weight, v_proj_weight=self.value.weight)
        return y.transpose(0, 1), None

    def paths(self, path):
        parts = {"query": self.query, "key": self.key, "value": self.value, "output": self.output}
        return {k: v for name, part in parts.items() for k, v in linear_paths(f"{path}/{name}", part).items()}


def encoder_layer(c):
    layer = nn.TransformerEncoderLayer(c["d_model"], c["heads"], c["d_ff"], 0.0, ACTIVATIONS[c["activation"]],
                                       batch_first=True, norm_first=c["norm"] == "pre")
    layer.self_attn = Attention(c["d_model"], c["heads"])
    return layer


def decoder_layer(c):
    layer = nn.TransformerDecoderLayer(c["d_model"], c["heads"], c["d_ff"], 0.0, ACTIVATIONS[c["activation"]],
                                       batch_first=True, norm_first=c["norm"] == "pre")
    layer.self_attn = Attention(c["d_model"], c["heads"])
    layer.multihead_attn = Attention(c["d_model"], c["heads"])
    return layer


def encoder_layer_paths(path, m):
    return {**m.self_attn.paths(path + "self_attention"), **norm_paths(path + "self_attention/norm", m.norm1),
            **linear_paths(path + "feed_forward/inner", m.linear1),
            **linear_paths(path + "feed_forward/outer", m.linear2), **norm_paths(path + "feed_forward/norm", m.norm2)}


def decoder_layer_paths(path, m):
    return {**m.self_attn.paths(path + "self_attention"), **norm_paths(path + "self_attention/norm", m.norm1),
            **m.multihead_attn.paths(path + "cross_attention"), **norm_paths(path + "cross_attention/norm", m.norm2),
            **linear_paths(path + "feed_forward/inner", m.linear1),
            **linear_paths(path + "feed_forward/outer", m.linear2), **norm_paths(path + "feed_forward/norm", m.norm3)}


def randomise(paths):
    """Every parameter random, also those that usually start at 0 or 1."""
    for path, p in paths.items():
        with torch.no_grad():
            p.copy_(torch.randn_like(p) * 0.3 + (1.0 if path.endswith("gamma") else 0.0))


def write_settings(group, c):
    for name, value in c.items():
        group.attrs[name] = value


def run_encoder_layer(layer, x, lengths):
    return layer(x, src_key_padding_mask=padding(lengths))


def run_decoder_layer(layer, x, lengths, memory, memory_lengths):
    return layer(x, memory, tgt_mask=causal(x.shape[1]), tgt_key_padding_mask=padding(lengths),
                 memory_key_padding_mask=padding(memory_lengths))


def write_layers(file):
    for norm in ("pre", "post"):
        for activation in ("relu", "swish") if norm == "pre" else ("gelu",):
            c = {"d_model": 6, "heads": 3, "d_ff": 5, "activation": activation, "norm": norm}
            lengths, memory_lengths = [3, 5, 1], [4, 2, 6]
            x, memory = random(sum(lengths), 6), random(sum(memory_lengths), 6)
            for kind in ("encoder", "decoder"):
                layer = encoder_layer(c) if kind == "encoder" else decoder_layer(c)
                paths = encoder_layer_paths("", layer) if kind == "encoder" else decoder_layer_paths("", layer)
                randomise(paths)
                group = file.create_group(f"{kind}_{norm}_{activation}")
                write_settings(group, c)
                for path, p in paths.items():
                    write(group, "parameters/" + path, p)
                write(group, "lengths", lengths)
                variables = {"x": x, **paths}
                if kind == "encoder":
                    y = run_encoder_layer(layer, pad(x, lengths), lengths)
                else:
                    y = run_decoder_layer(layer, pad(x, lengths), lengths, pad(memory, memory_lengths), memory_lengths)
                    variables["memory"] = memory
                    write(group, "memory", memory)
                    write(group, "memory_lengths", memory_lengths)
                y = pack(y, lengths)
                dy = torch.randn_like(y)
                write(group, "x", x)
                write(group, "y", y)
                write(group, "dy", dy)
                write_gradients(group, y, dy, variables)


def sinusoids(length, d):
    """P(p, 2i) = sin(p/10000^(2i/d)), P(p, 2i+1) = cos(p/10000^(2i/d)): Vaswani et al. 2017."""
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(length, d)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, pre = c["d_model"], c["norm"] == "pre"
        self.c = c
        self.source = nn.Embedding(c["source_vocabulary"], d)
        self.target = self.source if c["tie_embeddings"] == "all" else nn.Embedding(c["target_vocabulary"], d)
        self.encoder = nn.ModuleList(encoder_layer(c) for _ in range(c["encoder_layers"]))
        self.decoder = nn.ModuleList(decoder_layer(c) for _ in range(c["decoder_layers"]))
        self.encoder_norm = nn.LayerNorm(d) if pre else None
        self.decoder_norm = nn.LayerNorm(d) if pre else None
        self.output = nn.Linear(d, c["target_vocabulary"])
        if c["tie_embeddings"] != "none":
            self.output.weight = self.target.weight
        if c["positions"] == "learned":
            self.source_positions = nn.Embedding(c["max_length"], d)
            self.target_positions = nn.Embedding(c["max_length"], d)

    def paths(self):
        c = self.c
        paths = {"output/bias": self.output.bias}
        if c["tie_embeddings"] == "all":
            paths["embedding/weight"] = self.source.weight
        else:
            paths["encoder/embedding/weight"], paths["decoder/embedding/weight"] = self.source.weight, self.target.weight
        if c["tie_embeddings"] == "none":
            paths["output/weight"] = self.output.weight
        if c["positions"] == "learned":
            paths["encoder/positions/weight"] = self.source_positions.weight
            paths["decoder/positions/weight"] = self.target_positions.weight
        for i, layer in enumerate(self.encoder):
            paths.update(encoder_layer_paths(f"encoder/layers/{i}/", layer))
        for i, layer in enumerate(self.decoder):
            paths.update(decoder_layer_paths(f"decoder/layers/{i}/", layer))
        if self.encoder_norm:
            paths.update(norm_paths("encoder/norm", self.encoder_norm))
            paths.update(norm_paths("decoder/norm", self.decoder_norm))
        assert {id(p) for p in paths.values()} == {id(p) for p in self.parameters()}
        return paths

    def embed(self, ids, side):
        n, d = ids.shape[1], self.c["d_model"]
        x = getattr(self, side)(ids) * math.sqrt(d)
        if self.c["positions"] == "learned":
            x = x + getattr(self, side + "_positions").weight[:n]
        if self.c["positions"] == "sinusoidal":
            x = x + sinusoids(n, d)
        return x

    def forward(self, source, target):
        """Lists of id lists -> packed logits."""
        source_lengths, target_lengths = [len(s) for s in source], [len(t) for t in target]
        ids = lambda sentences: nn.utils.rnn.pad_sequence([torch.tensor(s) for s in sentences], batch_first=True)
        x = self.embed(ids(source), "source")
        for layer in self.encoder:
            x = run_encoder_layer(layer, x, source_lengths)
        memory = self.encoder_norm(x) if self.encoder_norm else x
        x = self.embed(ids(target), "target")
        for layer in self.decoder:
            x = run_decoder_layer(layer, x, target_lengths, memory, source_lengths)
        x = self.decoder_norm(x) if self.decoder_norm else x
        return self.output(pack(x, target_lengths))

    def loss(self, logits, outputs):
        return F.cross_entropy(logits, torch.tensor(sum(outputs, [])), label_smoothing=EPS, reduction="sum")


BATCHES = [
    ([[3, 5, 4, EOS], [6, 7, 8, 9, 3, 3, EOS], [5, EOS]], [[4, 3, EOS], [9, 8, 7, 6, 5, EOS], [3, 3, 4, 4, EOS]]),
    ([[8, EOS], [4, 6, 6, 3, EOS]], [[7, 3, 9, 5, 8, 6, EOS], [4, EOS]]),
]


def write_batch(group, model, source, target):
    inputs = [[BOS] + t[:-1] for t in target]
    logits = model(source, inputs)
    loss = model.loss(logits, target)
    for name, sentences in {"source": source, "target_input": inputs, "target_output": target}.items():
        write(group, name, torch.tensor(sum(sentences, [])).int())
    write(group, "source_lengths", [len(s) for s in source])
    write(group, "target_lengths", [len(t) for t in target])
    write(group, "log_probabilities", torch.log_softmax(logits, -1))
    write(group, "loss", loss)
    write_gradients(group, loss, torch.ones(()), model.paths())


def adam_losses(model, learning_rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(10):
        source, target = BATCHES[step % 2]
        optimizer.zero_grad()
        loss = model.loss(model(source, [[BOS] + t[:-1] for t in target]), target) / sum(map(len, target))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def write_models(file):
    base = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "heads": 2, "d_ff": 6, "activation": "relu",
            "norm": "post", "positions": "sinusoidal", "tie_embeddings": "all", "max_length": 8,
            "source_vocabulary": 10, "target_vocabulary": 10}
    variants = {
        "tied_all_post": {"encoder_layers": 2, "decoder_layers": 2},
        "tied_target_pre": {"tie_embeddings": "target", "norm": "pre", "activation": "gelu", "source_vocabulary": 12},
        "untied_post": {"tie_embeddings": "none", "activation": "gelu", "heads": 4, "target_vocabulary": 11},
        "learned_positions_pre": {"positions": "learned", "norm": "pre", "activation": "swish", "heads": 1},
        "no_positions_uneven": {"positions": "none", "decoder_layers": 2, "heads": 8},
    }
    for name, changes in variants.items():
        c = {**base, **changes}
        model = Model(c)
        randomise(model.paths())
        group = file.create_group(name)
        write_settings(group, c)
        group.attrs["label_smoothing"], group.attrs["learning_rate"] = EPS, 0.003
        for path, p in model.paths().items():
            write(group, "parameters/" + path, p)
        for i, (source, target) in enumerate(BATCHES):
            write_batch(group.create_group(f"batches/{i}"), model, source, target)
        write(group, "adam_losses", adam_losses(model, 0.003))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "data")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for seed, (name, writer) in enumerate({"ops": write_ops, "layers": write_layers, "models": write_models}.items()):
        torch.manual_seed(seed)
        with h5py.File(os.path.join(folder, f"golden_{name}.h5"), "w", libver="latest") as file:
            writer(file)


if __name__ == "__main__":
    main()
