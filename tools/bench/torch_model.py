"""The Transformer of a polyhead configuration from PyTorch's primitives."""
import torch
from torch import nn
from torch.nn import functional as F


def parse_config(text):
    """Scalars of a resolved configuration by section: {"model": {"d_model": "128", ...}, ...}."""
    sections, section = {}, {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if not line.startswith(" "):
            section = sections.setdefault(key, {})
        elif not line.startswith("   "):
            section[key.strip()] = value.strip().strip('"')
    return sections


def require(condition, setting, value, known):
    """Ends the program unless the peer can do as the configuration says."""
    if not condition:
        raise SystemExit(f"torch_peer: {setting} is {value}, the peer knows only {known}")


def require_settings(section, values, **known):
    for key, value in known.items():
        require(values[key] == value, f"{section}.{key}", values[key], value)


class Shape:
    def __init__(self, config, vocabulary):
        model = config["model"]
        require_settings("model", model, activation="relu", positions="sinusoidal", tie_embeddings="all", bias="true",
                         attention_dropout="0", activation_dropout="0")
        require(model["heads"].isdigit(), "model.heads", model["heads"], "one number for all layers")
        self.d, self.d_ff, self.heads = (int(model[k]) for k in ("d_model", "d_ff", "heads"))
        self.encoder_layers, self.decoder_layers = int(model["encoder_layers"]), int(model["decoder_layers"])
        for key in ("head_dim", "value_dim"):
            require(model[key] in ("null", str(self.d // self.heads)), f"model.{key}", model[key], "d_model / heads")
        self.pre_norm, self.dropout = model["norm"] == "pre", float(model["dropout"])
        self.max_length, self.vocabulary = int(model["max_length"]), vocabulary


def sinusoids(length, d):
    """[length, d]: sines in the even features, cosines in the odd ones."""
    angles = torch.outer(torch.arange(length, dtype=torch.float64),
                         10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d].float()


def split_heads(x, parts, heads):
    """[batch, length, parts·d] to `parts` views [batch, heads, length, d / heads]."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def attend(q, k, v, mask):
    """softmax(q kᵀ / √d + mask) v, heads side by side again: [batch, length, d]. `mask` is added, or None."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.add_(mask.to(scores.dtype))
    return (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    names = {"projection": ("query", "key", "value"), "output": ("output",)}

    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.projection = nn.Linear(shape.d, 3 * shape.d)
        self.output = nn.Linear(shape.d, shape.d)

    def forward(self, x, mask=None, cache=None):
        q, k, v = split_heads(self.projection(x), 3, self.heads)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        return self.output(attend(q, k, v, mask))


class CrossAttention(nn.Module):
    names = {"query": ("query",), "projection": ("key", "value"), "output": ("output",)}

    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.query = nn.Linear(shape.d, shape.d)
        self.projection = nn.Linear(shape.d, 2 * shape.d)
        self.output = nn.Linear(shape.d, shape.d)

    def keys_values(self, memory):
        return split_heads(self.projection(memory), 2, self.heads)

    def forward(self, x, keys_values, mask):
        k, v = keys_values
        queries = self.query(x).view(k.shape[0], -1, x.shape[-1])  # hypotheses of a sentence share its keys
        (q,) = split_heads(queries, 1, self.heads)
        return self.output(attend(q, k, v, mask).view(x.shape))


class FeedForward(nn.Module):
    names = {"inner": ("inner",), "outer": ("outer",)}

    def __init__(self, shape):
        super().__init__()
        self.inner, self.outer = nn.Linear(shape.d, shape.d_ff), nn.Linear(shape.d_ff, shape.d)

    def forward(self, x):
        return self.outer(F.relu(self.inner(x)))


class Block(nn.Module):
    """A sub-layer with its residual connection and its norm, before it or after both."""

    def __init__(self, shape, function):
        super().__init__()
        self.function, self.norm = function(shape), nn.LayerNorm(shape.d)
        self.pre_norm, self.dropout = shape.pre_norm, shape.dropout

    def forward(self, x, *arguments):
        y = self.function(self.norm(x) if self.pre_norm else x, *arguments)
        y = x + F.dropout(y, self.dropout, self.training)
        return y if self.pre_norm else self.norm(y)


def blocks(shape, count, **functions):
    return nn.ModuleList(nn.ModuleDict({name: Block(shape, f) for name, f in functions.items()}) for _ in range(count))


class Transformer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.d)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.encoder = blocks(shape, shape.encoder_layers, self_attention=SelfAttention, feed_forward=FeedForward)
        self.decoder = blocks(shape, shape.decoder_layers, self_attention=SelfAttention,
                              cross_attention=CrossAttention, feed_forward=FeedForward)
        self.norms = nn.ModuleDict({side: nn.LayerNorm(shape.d) if shape.pre_norm else nn.Identity()
                                    for side in ("encoder", "decoder")})
        self.register_buffer("positions", sinusoids(shape.max_length, shape.d), persistent=False)
        for name, p in self.named_parameters():
            if name.endswith("weight") and p.dim() == 2:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embedding.weight, std=shape.d**-0.5)

    def embed(self, ids, start=0):
        x = self.embedding(ids) * self.shape.d**0.5 + self.positions[start : start + ids.shape[1]]
        return F.dropout(x, self.shape.dropout, self.training)

    def encode(self, source, mask):
        x = self.embed(source)
        for layer in self.encoder:
            x = layer["feed_forward"](layer["self_attention"](x, mask))
        return self.norms["encoder"](x)

    def keys_values(self, memory):
        return [layer["cross_attention"].function.keys_values(memory) for layer in self.decoder]

    def decode(self, ids, keys_values, source_mask, mask=None, caches=None, start=0):
        x = self.embed(ids, start)
        for i, layer in enumerate(self.decoder):
            x = layer["self_attention"](x, mask, caches[i] if caches else None)
            x = layer["cross_attention"](x, keys_values[i], source_mask)
            x = layer["feed_forward"](x)
        return self.norms["decoder"](x)

    def logits(self, x):
        return F.linear(x, self.embedding.weight, self.bias)

    def token_logits(self, batch):
        """Logits of the real target tokens, in the order of batch.labels: [tokens, vocabulary]."""
        memory = self.encode(batch.source, batch.source_mask)
        x = self.decode(batch.target, self.keys_values(memory), batch.source_mask, batch.causal_mask)
        return self.logits(x.flatten(0, 1).index_select(0, batch.real))

    def load(self, parameters):
        """Takes the values of a checkpoint's group of parameters; fused projections stack query, key and value."""
        def take(tensor, *paths):
            tensor.data.copy_(torch.cat([torch.from_numpy(parameters[p][()]) for p in paths]))

        take(self.embedding.weight, "embedding/weight")
        take(self.bias, "output/bias")
        for side, layers in (("encoder", self.encoder), ("decoder", self.decoder)):
            if self.shape.pre_norm:
                take(self.norms[side].weight, f"{side}/norm/gamma")
                take(self.norms[side].bias, f"{side}/norm/beta")
            for i, layer in enumerate(layers):
                for name, block in layer.items():
                    path = f"{side}/layers/{i}/{name}"
                    take(block.norm.weight, f"{path}/norm/gamma")
                    take(block.norm.bias, f"{path}/norm/beta")
                    for linear, parts in block.function.names.items():
                        for kind in ("weight", "bias"):
                            take(getattr(getattr(block.function, linear), kind), *(f"{path}/{p}/{kind}" for p in parts))
