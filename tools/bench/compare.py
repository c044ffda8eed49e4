#!/usr/bin/python3
"""Times polyhead beside PyTorch, and beside Marian where it is installed, in turn on the same sentences.

  compare.py train CONFIG    updates of the weights
  compare.py decode MODEL    greedy and beam search with a trained model, a run or a checkpoint of polyhead

Run it in the folder that the configuration's data paths start from, with nothing else running. Prints a table of medians;
--output FILE gets every figure. The peer gets PyTorch's best settings, which are printed with it.
"""
import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from checkpoint import read_config
from programs import MarianDecoder, MarianTrainer, describe_peer, fail, last_json, peer_settings, run, run_peer
from torch_model import parse_config

MOST_PADDING = 0.1  # share of PyTorch's tokens up to which the comparison is fair
MOST_OUTPUT_DIFFERENCE = 0.05  # searches end a little differently, so translations are not all the same


def medians(reports):
    return {key: statistics.median(r[key] for r in reports)
            for key, value in reports[0].items() if isinstance(value, (int, float))}


def summary(reports, rate):
    """Medians of each program, and polyhead's rate and memory as multiples of the others'."""
    row = {name: medians(rs) for name, rs in reports.items()}
    for name in row.keys() - {"polyhead"}:
        row[f"rate_over_{name}"] = row["polyhead"][rate] / row[name][rate]
    row["memory_over_pytorch"] = row["polyhead"]["peak_memory_bytes"] / row["pytorch"]["peak_memory_bytes"]
    return row


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def common_cells(row, rate):
    """Rates, memory and their ratios."""
    ours, torch, marian = row["polyhead"], row["pytorch"], row.get("marian")
    return [f"{ours[rate]:.0f}", f"{torch[rate]:.0f}", f"{row['rate_over_pytorch']:.2f}",
            f"{ours['peak_memory_bytes'] / 2**20:.0f}", f"{torch['peak_memory_bytes'] / 2**20:.0f}",
            f"{row['memory_over_pytorch']:.2f}",
            f"{marian[rate]:.0f}" if marian else "-", f"{row['rate_over_marian']:.2f}" if marian else "-"]


COMMON_HEAD = ["polyhead tok/s", "PyTorch tok/s", "ratio", "MiB", "PyTorch MiB", "ratio", "Marian tok/s", "ratio"]


def tell(what, repetition, a, reports, rate):
    rates = ", ".join(f"{name} {rs[-1][rate]:.0f}" for name, rs in reports.items())
    print(f"{what}, repetition {repetition} of {a.repetitions}: {rates} tokens/s", file=sys.stderr)


def scaling(rows, key, rate):
    """For each `key`, the rates of every number of threads over those of one."""
    result = []
    for one in (row for row in rows if row["threads"] == 1):
        for row in rows:
            if row[key] == one[key] and row["threads"] > 1:
                result.append({key: row[key], "threads": row["threads"], **{
                    name: row[name][rate] / one[name][rate] for name in ("polyhead", "pytorch", "marian") if name in row}})
    return result


def finish(a, key, rate, rows, all_reports, variables, marian, more):
    """Prints what both comparisons have, and writes the file."""
    settings = describe_peer(all_reports[0]["pytorch"][0], variables)
    print(f"Peer: {settings}.")
    if marian.missing:
        print(f"Marian left out: {marian.missing}.")
    ratios = scaling(rows, key, rate)
    for ratio in ratios:
        print(f"{key} {ratio[key]}, {ratio['threads']} threads over 1: "
              + ", ".join(f"{name} {ratio[name]:.2f}" for name in ("polyhead", "pytorch", "marian") if name in ratio))
    if a.output:
        Path(a.output).write_text(json.dumps({
            **more, "date": time.strftime("%Y-%m-%d"), "peer_settings": settings, "marian": marian.missing or marian.program,
            "rows": rows, "scaling": ratios, "reports": all_reports}, indent=1) + "\n", encoding="utf-8")


# ---- training

TRAINING_RATE = "target_tokens_per_second"


def same_training(ours, theirs):
    """Fails unless both trained a model of the same size on as many target tokens in all."""
    for key in ("parameters", "target_tokens"):
        if ours[key] != theirs[key]:
            fail(f"{key}: polyhead has {ours[key]}, PyTorch {theirs[key]}")


def measure_training(a, config_file, batches, threads, precision, variables, marian):
    """Runs the programs in turn; {program: [report, ...]}."""
    reports = {"polyhead": [], "pytorch": []}
    for repetition in range(1, a.repetitions + 1):
        ours = last_json(run([
            a.polyhead, "bench", "train", a.config, "--steps", a.steps, "--threads", threads, "--repetitions", 1, "--json",
            "--write-batches", batches, "--set", f"training.precision={precision}"]))
        ours["target_tokens"] = round(ours["target_tokens_per_step"] * ours["steps"])
        reports["polyhead"].append(ours)
        peer = ["train", config_file, batches, "--threads", threads, "--repetitions", 1]
        reports["pytorch"].append(run_peer(peer + ["--bf16"] * (precision == "bf16"), variables))
        same_training(ours, reports["pytorch"][-1])
        if not marian.missing and precision == "f32":
            reports.setdefault("marian", []).append(marian.train(threads, a.steps, ours["target_tokens_per_step"]))
        tell(f"{precision}, {threads} threads", repetition, a, reports, TRAINING_RATE)
    return reports


def train(a):
    resolved_text = run([a.polyhead, "config", a.config])
    resolved = parse_config(resolved_text)
    variables = peer_settings(int(resolved["model"]["d_model"]))
    marian = MarianTrainer(a, resolved)
    rows, all_reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        config_file, batches = Path(folder, "config.yaml"), Path(folder, "batches.jsonl")
        config_file.write_text(resolved_text, encoding="utf-8")
        for precision in a.precision:
            for threads in a.threads:
                reports = measure_training(a, config_file, batches, threads, precision, variables, marian)
                all_reports.append(reports)
                rows.append({"precision": precision, "threads": threads, **summary(reports, TRAINING_RATE)})
    print(table(["precision", "threads", *COMMON_HEAD, "GF/s", "of limit"],
                [[row["precision"], str(row["threads"]), *common_cells(row, TRAINING_RATE),
                  f"{row['polyhead']['gflops']:.0f}", f"{100 * row['polyhead']['gemm_limit_share']:.0f}%"] for row in rows]))
    padding = rows[0]["pytorch"]["padding_share"]
    print(f"\nPadding of PyTorch's batches: {100 * padding:.1f}%.")
    if padding > MOST_PADDING:
        print(f"That is more than {100 * MOST_PADDING:.0f}%: more --steps give PyTorch more sentences to sort.")
    finish(a, "precision", TRAINING_RATE, rows, all_reports, variables, marian, {"config": resolved_text})


# ---- decoding

DECODING_RATE = "output_tokens_per_second"


def same_decoding(name, ours, theirs):
    """Fails unless both translated as many sentences into about as many tokens."""
    difference = abs(theirs["output_tokens"] / ours["output_tokens"] - 1)
    if ours["sentences"] != theirs["sentences"] or (name == "pytorch" and difference > MOST_OUTPUT_DIFFERENCE):
        fail(f"polyhead translated {ours['sentences']} sentences into {ours['output_tokens']} tokens, "
             f"{name} {theirs['sentences']} into {theirs['output_tokens']}")


def measure_decoding(a, sources, threads, beam, variables, marian):
    """Runs the programs in turn; {program: [report, ...]}."""
    reports = {"polyhead": [], "pytorch": []}
    for repetition in range(1, a.repetitions + 1):
        ours = last_json(run([
            a.polyhead, "bench", "decode", a.model, "--split", a.split, "--beam", beam, "--threads", threads,
            "--repetitions", 1, "--json", "--write-sources", sources]))
        reports["polyhead"].append(ours)
        reports["pytorch"].append(run_peer(["decode", ours["checkpoint"], sources, "--beam", beam, "--threads", threads,
                                            "--repetitions", 1], variables))
        if not marian.missing:
            reports.setdefault("marian", []).append(marian.decode(threads, beam))
        for name in reports.keys() - {"polyhead"}:
            same_decoding(name, ours, reports[name][-1])
        tell(f"beam {beam}, {threads} threads", repetition, a, reports, DECODING_RATE)
    return reports


def decode(a):
    path = json.loads(run([a.polyhead, "inspect", a.model, "--json"]))["checkpoint"]
    config = read_config(path)
    variables = peer_settings(int(parse_config(config)["model"]["d_model"]))
    marian = MarianDecoder(a.marian)
    rows, all_reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        for beam in a.beam:
            for threads in a.threads:
                reports = measure_decoding(a, Path(folder, "sources.jsonl"), threads, beam, variables, marian)
                all_reports.append(reports)
                rows.append({"beam": beam, "threads": threads, **summary(reports, DECODING_RATE)})
    print(table(["beam", "threads", *COMMON_HEAD, "output tokens", "PyTorch's"],
                [[str(row["beam"]), str(row["threads"]), *common_cells(row, DECODING_RATE),
                  f"{row['polyhead']['output_tokens']:.0f}", f"{row['pytorch']['output_tokens']:.0f}"] for row in rows]))
    print()
    finish(a, "beam", DECODING_RATE, rows, all_reports, variables, marian, {"config": config, "checkpoint": path})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(function, model):
        sub = commands.add_parser(function.__name__)
        sub.set_defaults(function=function)
        sub.add_argument(model)
        sub.add_argument("--threads", type=int, nargs="+", default=[1, 2])
        sub.add_argument("--repetitions", type=int, default=3)
        sub.add_argument("--polyhead", default="polyhead", help="the program")
        sub.add_argument("--output", help="JSON file of all figures")
        return sub

    sub = command(train, "config")
    sub.add_argument("--steps", type=int, default=20, help="batches, each trained on once a repetition")
    sub.add_argument("--precision", nargs="+", choices=("f32", "bf16"), default=["f32"])
    sub.add_argument("--marian-text", nargs=3, metavar=("SOURCE", "TARGET", "VOCABULARY"),
                     help="plain text and a vocabulary that Marian reads; without them Marian is left out")
    sub = command(decode, "model")
    sub.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    sub.add_argument("--split", default="test", choices=("train", "valid", "test"))
    sub.add_argument("--marian", nargs=3, metavar=("MODEL", "VOCABULARY", "SOURCE"),
                     help="Marian's model of the same shape, its vocabulary, and the split's source as it reads it; "
                          "without them Marian is left out")
    return parser.parse_args()


def main():
    a = parse_arguments()
    a.function(a)


if __name__ == "__main__":
    main()
