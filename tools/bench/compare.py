#!/usr/bin/python3
"""Times training with polyhead beside PyTorch, and beside Marian where it is installed, on the same sentences in turn.

  compare.py CONFIG [--threads 1 2] [--steps 20] [--repetitions 3] [--precision f32 bf16] [--output FILE]

Run it in the folder that CONFIG's data paths start from, with nothing else running. Prints a table of medians; FILE gets
every figure. The peer gets PyTorch's best settings, which are printed with it.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torch_model import parse_config

PEER = Path(__file__).with_name("torch_peer.py")
MOST_PADDING = 0.1  # share of PyTorch's tokens up to which the comparison is fair
HUGE_PAGES_FROM = 512  # d_model from which PyTorch trains faster with transparent huge pages in malloc


def fail(message):
    raise SystemExit(f"compare: {message}")


def run(command, environment=None):
    result = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        fail(f"status {result.returncode} of {' '.join(map(str, command))}")
    return result.stdout


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def peer_settings(d_model):
    """Environment variables for the peer, and what they do in words."""
    folder = next(Path("/usr/lib").glob("*/openblas-openmp"), None)
    if folder is None:
        fail("the OpenMP build of OpenBLAS is not installed, and PyTorch is slower without it: "
             "tools/install-dependencies.sh bench")
    variables = {"LD_LIBRARY_PATH": str(folder)}
    if d_model >= HUGE_PAGES_FROM:
        variables["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return variables


def peer_environment(variables):
    unset = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    return {**{k: v for k, v in os.environ.items() if k not in unset}, **variables}


class Marian:
    """Training of the same shape from text: Marian cuts its own batches, of about as many target tokens."""

    def __init__(self, a, resolved):
        self.program, self.text, self.config = shutil.which("marian"), a.marian_text, resolved
        self.missing = None
        if not self.program:
            self.missing = "no marian on the PATH"
        elif not self.text:
            self.missing = "marian needs --marian-text SOURCE TARGET VOCABULARY"

    def train(self, threads, steps, target_tokens):
        model, training = self.config["model"], self.config["training"]
        source, target, vocabulary = self.text
        post = "dan" if model["norm"] == "post" else "da"
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, "--type", "transformer", "--model", f"{folder}/model.npz",
                       "--train-sets", source, target, "--vocabs", vocabulary, vocabulary,
                       "--cpu-threads", threads, "--dim-emb", model["d_model"],
                       "--enc-depth", model["encoder_layers"], "--dec-depth", model["decoder_layers"],
                       "--transformer-heads", model["heads"], "--transformer-dim-ffn", model["d_ff"],
                       "--transformer-ffn-activation", model["activation"], "--transformer-postprocess", post,
                       "--transformer-preprocess", "" if post == "dan" else "n", "--transformer-dropout", model["dropout"],
                       "--tied-embeddings-all", "--label-smoothing", training["label_smoothing"],
                       "--optimizer-params", 0.9, 0.98, "1e-09", "--learn-rate", training["learning_rate"],
                       "--mini-batch", 10000, "--mini-batch-words", round(target_tokens), "--maxi-batch", 100,
                       "--workspace", 2000, "--sync-sgd", "--after-batches", steps + 5, "--disp-freq", 1]
            log = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 check=False)
        rates = [float(rate) for rate in re.findall(r"([0-9.]+) words/s", log.stdout)][5:]
        if log.returncode or not rates:
            fail(f"status {log.returncode} of marian: {log.stdout.strip().splitlines()[-1:]}")
        return {"target_tokens_per_second": statistics.median(rates)}


def same_work(ours, theirs):
    """Fails unless both trained a model of the same size on as many target tokens in all."""
    for key in ("parameters", "target_tokens"):
        if ours[key] != theirs[key]:
            fail(f"{key}: polyhead has {ours[key]}, PyTorch {theirs[key]}")


def measure(a, config_file, batches, threads, precision, environment, marian):
    """Runs the programs in turn; {program: [report, ...]}."""
    reports = {"polyhead": [], "pytorch": []}
    for repetition in range(1, a.repetitions + 1):
        ours = last_json(run([
            a.polyhead, "bench", "train", a.config, "--steps", a.steps, "--threads", threads, "--repetitions", 1, "--json",
            "--write-batches", batches, "--set", f"training.precision={precision}"]))
        ours["target_tokens"] = round(ours["target_tokens_per_step"] * ours["steps"])
        reports["polyhead"].append(ours)
        peer = ["/usr/bin/python3", PEER, "train", config_file, batches, "--threads", threads, "--repetitions", 1]
        reports["pytorch"].append(last_json(run(peer + ["--bf16"] * (precision == "bf16"), environment)))
        same_work(ours, reports["pytorch"][-1])
        if not marian.missing and precision == "f32":
            reports.setdefault("marian", []).append(marian.train(threads, a.steps, ours["target_tokens_per_step"]))
        rates = ", ".join(f"{name} {rs[-1]['target_tokens_per_second']:.0f}" for name, rs in reports.items())
        print(f"{precision}, {threads} threads, repetition {repetition} of {a.repetitions}: {rates} target tokens/s",
              file=sys.stderr)
    return reports


def medians(reports):
    return {key: statistics.median(r[key] for r in reports)
            for key, value in reports[0].items() if isinstance(value, (int, float))}


def summary(reports):
    """Medians of each program, and polyhead's rate and memory as multiples of the others'."""
    row = {name: medians(rs) for name, rs in reports.items()}
    ours, torch = row["polyhead"], row["pytorch"]
    row["rate_over_pytorch"] = ours["target_tokens_per_second"] / torch["target_tokens_per_second"]
    row["memory_over_pytorch"] = ours["peak_memory_bytes"] / torch["peak_memory_bytes"]
    if "marian" in row:
        row["rate_over_marian"] = ours["target_tokens_per_second"] / row["marian"]["target_tokens_per_second"]
    return row


def table(rows):
    head = ("precision", "threads", "polyhead tok/s", "PyTorch tok/s", "ratio", "MiB", "PyTorch MiB", "ratio",
            "GF/s", "of limit", "Marian tok/s", "ratio")
    lines = [head, tuple("---" for _ in head)]
    for row in rows:
        ours, torch, marian = row["polyhead"], row["pytorch"], row.get("marian")
        lines.append((row["precision"], str(row["threads"]),
                      f"{ours['target_tokens_per_second']:.0f}", f"{torch['target_tokens_per_second']:.0f}",
                      f"{row['rate_over_pytorch']:.2f}", f"{ours['peak_memory_bytes'] / 2**20:.0f}",
                      f"{torch['peak_memory_bytes'] / 2**20:.0f}", f"{row['memory_over_pytorch']:.2f}",
                      f"{ours['gflops']:.0f}", f"{100 * ours['gemm_limit_share']:.0f}%",
                      f"{marian['target_tokens_per_second']:.0f}" if marian else "-",
                      f"{row['rate_over_marian']:.2f}" if marian else "-"))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scaling(rows):
    """For each precision, the rates of every other number of threads over those of the first."""
    result = []
    for first in rows:
        for row in rows:
            if row["precision"] != first["precision"] or row["threads"] <= first["threads"] or first["threads"] != 1:
                continue
            result.append({"precision": row["precision"], "threads": row["threads"], **{
                name: row[name]["target_tokens_per_second"] / first[name]["target_tokens_per_second"]
                for name in ("polyhead", "pytorch", "marian") if name in row}})
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20, help="batches, each trained on once a repetition")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--precision", nargs="+", choices=("f32", "bf16"), default=["f32"])
    parser.add_argument("--polyhead", default="polyhead", help="the program")
    parser.add_argument("--marian-text", nargs=3, metavar=("SOURCE", "TARGET", "VOCABULARY"),
                        help="plain text and a vocabulary that Marian reads; without them Marian is left out")
    parser.add_argument("--output", help="JSON file of all figures")
    return parser.parse_args()


def main():
    a = parse_arguments()
    resolved_text = run([a.polyhead, "config", a.config])
    resolved = parse_config(resolved_text)
    variables = peer_settings(int(resolved["model"]["d_model"]))
    marian = Marian(a, resolved)
    rows, all_reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        config_file, batches = Path(folder, "config.yaml"), Path(folder, "batches.jsonl")
        config_file.write_text(resolved_text, encoding="utf-8")
        for precision in a.precision:
            for threads in a.threads:
                reports = measure(a, config_file, batches, threads, precision, peer_environment(variables), marian)
                all_reports.append(reports)
                rows.append({"precision": precision, "threads": threads, **summary(reports)})
    peer = all_reports[0]["pytorch"][0]
    settings = (f"PyTorch {peer['torch']}, {peer.get('openblas', peer['blas'])}, {peer.get('openblas_kernels', '?')} kernels; "
                f"OPENBLAS_* unset; malloc keeps its blocks (mallopt); {' '.join(f'{k}={v}' for k, v in variables.items())}")
    padding = peer["padding_share"]
    print(table(rows), f"\nPadding of PyTorch's batches: {100 * padding:.1f}%.", f"Peer: {settings}.", sep="\n")
    if padding > MOST_PADDING:
        print(f"PyTorch's batches have more padding than {100 * MOST_PADDING:.0f}%: more --steps give it more sentences to sort.")
    if marian.missing:
        print(f"Marian left out: {marian.missing}.")
    ratios = scaling(rows)
    for ratio in ratios:
        print(f"{ratio['precision']}, {ratio['threads']} threads over 1: "
              + ", ".join(f"{name} {ratio[name]:.2f}" for name in ("polyhead", "pytorch", "marian") if name in ratio))
    if a.output:
        Path(a.output).write_text(json.dumps({
            "config": resolved_text, "date": time.strftime("%Y-%m-%d"), "peer_settings": settings,
            "marian": marian.missing or marian.program, "rows": rows, "scaling": ratios, "reports": all_reports},
            indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
