#!/usr/bin/python3
"""The Transformer of a polyhead configuration in PyTorch on a CPU, with the settings that make PyTorch fastest.

  torch_peer.py train CONFIG BATCHES    time updates on the sentences that `polyhead bench train --write-batches` wrote
  torch_peer.py decode MODEL SOURCES    time greedy or beam search
  torch_peer.py check MODEL BATCHES     compare log-probabilities with those of `polyhead score`

CONFIG is what `polyhead config` prints. Each command prints one JSON object. Needs PyTorch; decode and check need h5py.
"""
import argparse
import ctypes
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from torch_batches import Batch, repack
from torch_model import Shape, Transformer, parse_config, require_settings
from torch_search import translate


def keep_freed_memory():
    """Makes glibc's malloc serve every size from the heap and keep what is freed: otherwise each large tensor is mapped,
    and paged in, anew. The numbers are those of <malloc.h>."""
    libc = ctypes.CDLL("libc.so.6")
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    for parameter, value in ((mmap_threshold, 2**31 - 1), (trim_threshold, 2**31 - 1), (top_pad, 2**28)):
        if libc.mallopt(parameter, value) != 1:
            raise SystemExit(f"torch_peer: mallopt({parameter}, {value}) was refused: malloc would not keep its blocks")


def read_batches(path):
    with open(path, encoding="utf-8") as lines:
        batches = [json.loads(line) for line in lines]
    if not batches:
        raise SystemExit(f"torch_peer: {path} is empty, expected a JSON object a line")
    return batches


def libraries():
    """Which matrix products PyTorch runs on: the BLAS in use, and how OpenBLAS was built and which kernels it chose."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line.rpartition("/")[2]}
    info = {"torch": torch.__version__, "onednn": torch.backends.mkldnn.is_available(), "blas": sorted(paths)}
    for path in paths:
        library = ctypes.CDLL(path)
        if hasattr(library, "openblas_get_config"):
            library.openblas_get_config.restype = ctypes.c_char_p
            library.openblas_get_corename.restype = ctypes.c_char_p
            info["openblas"] = library.openblas_get_config().decode()
            info["openblas_kernels"] = library.openblas_get_corename().decode()
    return info


def report(values):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"threads": torch.get_num_threads(), **values, "peak_memory_bytes": memory, **libraries()}))


class Training:
    def __init__(self, model, config, bf16):
        training = config["training"]
        require_settings("training", training, optimizer="adam", weight_decay="0", ema_decay="0", accumulate="1")
        self.model, self.bf16 = model.train(), bf16
        self.rate, self.warmup = float(training["learning_rate"]), max(1, int(training["warmup_steps"]))
        self.smoothing, self.clip = float(training["label_smoothing"]), float(training["clip_norm"])
        self.adam = torch.optim.Adam(model.parameters(), lr=self.rate, eps=float(training["eps"]),
                                     betas=(float(training["beta1"]), float(training["beta2"])))
        self.updates = 0

    def update(self, batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            loss = F.cross_entropy(self.model.token_logits(batch).float(), batch.labels,
                                   label_smoothing=self.smoothing)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.updates += 1
        for group in self.adam.param_groups:
            group["lr"] = self.rate * min(self.updates / self.warmup, (self.warmup / self.updates) ** 0.5)
        self.adam.step()
        return loss.item()


def train(a):
    config = parse_config(Path(a.config).read_text(encoding="utf-8"))
    groups = [list(zip(b["source"], b["target"])) for b in read_batches(a.batches)]
    if not a.same_batches:
        groups = repack(groups)
    batches = [Batch(*zip(*group)) for group in groups]
    model = Transformer(Shape(config, int(config["tokenizer"]["vocab_size"])))
    training = Training(model, config, a.bf16)
    for batch in sorted(batches, key=lambda b: -b.places):  # the largest first: memory then grows no more
        training.update(batch)
    seconds = []
    for _ in range(a.repetitions):
        begin = time.perf_counter()
        losses = [training.update(batch) for batch in batches]
        seconds.append(time.perf_counter() - begin)
    target = sum(len(b.labels) for b in batches)
    report({"target_tokens_per_second": statistics.median(target / s for s in seconds),
            "target_tokens_per_second_repetitions": [target / s for s in seconds],
            "target_tokens": target, "target_tokens_per_step": target / len(batches),
            "seconds_per_step": statistics.median(seconds) / len(batches),
            "steps": len(batches), "repetitions": a.repetitions, "loss": statistics.mean(losses),
            "padding_share": 1 - sum(b.tokens for b in batches) / sum(b.places for b in batches),
            "parameters": sum(p.numel() for p in model.parameters()), "precision": "bf16" if a.bf16 else "f32"})


def decode(a):
    from checkpoint import load_checkpoint

    model, config, _ = load_checkpoint(a.model)
    decoding = config["decoding"]
    require_settings("decoding", decoding, method="beam", nbest="1")
    penalty = decoding["length_penalty_kind"], float(decoding["length_penalty"])
    ratio, extra = float(decoding["max_length_ratio"]), int(decoding["max_length_extra"])
    sources = sorted((line["source"] for line in read_batches(a.sources)), key=len)
    groups = [sources[i : i + a.batch] for i in range(0, len(sources), a.batch)]

    def run(group):
        return translate(model, group, a.beam, [int(ratio * len(s) + extra) for s in group], penalty)

    seconds = []
    torch.set_num_threads(1)
    with ThreadPoolExecutor(a.threads) as pool:  # batches side by side: threads within an op of this size only wait
        for _ in range(a.repetitions + 1):
            begin = time.perf_counter()
            outputs = [ids for translations in pool.map(run, groups) for ids in translations]
            seconds.append(time.perf_counter() - begin)
    del seconds[0]  # warms up
    tokens = sum(map(len, outputs))
    report({"output_tokens_per_second": statistics.median(tokens / s for s in seconds),
            "sentences_per_second": len(sources) / statistics.median(seconds), "output_tokens": tokens,
            "sentences": len(sources), "threads": a.threads, "beam": a.beam, "repetitions": a.repetitions})


def check(a):
    from checkpoint import load_checkpoint, pieces_of

    model, _, vocabulary = load_checkpoint(a.model)
    pieces = pieces_of(vocabulary)
    batch = read_batches(a.batches)[0]
    pairs = list(zip(batch["source"], batch["target"]))[: a.pairs]
    batch = Batch(*map(list, zip(*pairs)))
    with torch.no_grad():
        log_p = F.log_softmax(model.token_logits(batch), -1).gather(1, batch.labels[:, None]).flatten()
    ours = [float(part.double().sum()) for part in log_p.split([len(target) for _, target in pairs])]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source"), Path(folder, "target")
        source.write_text("".join("".join(pieces[i] for i in s[:-1]).replace("▁", " ").strip() + "\n" for s, _ in pairs),
                          encoding="utf-8")
        target.write_text("".join(" ".join(pieces[i] for i in t[:-1]) + "\n" for _, t in pairs), encoding="utf-8")
        output = subprocess.run([a.polyhead, "score", a.model, "--pieces", "--source", source, "--target", target],
                                check=True, capture_output=True, text=True).stdout
    theirs = [float(line) for line in output.split()]
    worst = max(abs(x - y) / len(target) for x, y, (_, target) in zip(ours, theirs, pairs, strict=True))
    report({"pairs": len(pairs), "tokens": len(batch.labels), "largest_difference_per_token": worst,
            "mean_log_probability": sum(ours) / len(batch.labels)})
    return 0 if worst <= 1e-4 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(function, *files):
        sub = commands.add_parser(function.__name__)
        sub.set_defaults(function=function)
        for file in files:
            sub.add_argument(file)
        sub.add_argument("--threads", type=int, default=1)
        return sub

    sub = command(train, "config", "batches")
    sub.add_argument("--repetitions", type=int, default=3)
    sub.add_argument("--same-batches", action="store_true",
                     help="keep the batches as they are, instead of cutting as many with less padding from all sentences")
    sub.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    sub = command(decode, "model", "sources")
    sub.add_argument("--repetitions", type=int, default=3)
    sub.add_argument("--beam", type=int, default=1)
    sub.add_argument("--batch", type=int, default=64, help="sentences decoded together")
    sub = command(check, "model", "batches")
    sub.add_argument("--polyhead", default="polyhead", help="the program")
    sub.add_argument("--pairs", type=int, default=20)
    a = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    return a.function(a)


if __name__ == "__main__":
    sys.exit(main())
