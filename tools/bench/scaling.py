#!/usr/bin/python3
"""Measures how the cost of an update of training grows, in time and memory, with one quantity at a time.

  scaling.py [length batch d_model layers vocabulary heads]

Runs `polyhead bench train` on random sentences of one length, on one thread and with one lane, each point --rounds times in
turn with all others of its sweep. Writes NAME.tsv (medians) and NAME.svg of every sweep to --output, all reports to
scaling.json, and prints the tables and fits. --from FILE takes the reports from such a file instead of measuring.
Needs gnuplot. Nothing else should run on the machine.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Sweep:
    """One quantity: its values, and what each asks of `polyhead bench train`."""

    def __init__(self, label, values, settings, length=32, steps=8):
        self.label, self.values, self.settings, self.length, self.steps = label, values, settings, length, steps

    def arguments(self, value):
        length = value if self.length is None else self.length
        return ["--length", length, "--steps", self.steps,
                *(word for key, setting in self.settings(value).items() for word in ("--set", f"{key}={setting}"))]


SWEEPS = {
    # One layer each: attention does not need more to be seen, and long sentences take their time. Batches hold 8192
    # tokens at every length, so that all but attention costs the same.
    "length": Sweep("sentence length, tokens", [2**i for i in range(4, 14)],
                    lambda _: {"training.batch_tokens": 8192, "model.encoder_layers": 1, "model.decoder_layers": 1},
                    length=None, steps=1),
    "batch": Sweep("target tokens a batch", [2**i for i in range(8, 15)], lambda n: {"training.batch_tokens": n}),
    # d_ff and the number of heads grow as well: heads of 32 features.
    "d_model": Sweep("d_model", [64, 128, 256, 512, 1024],
                     lambda d: {"model.d_model": d, "model.d_ff": 2 * d, "model.heads": d // 32}, steps=2),
    "layers": Sweep("layers, encoder and decoder each", [1, 2, 4, 8, 16],
                    lambda n: {"model.encoder_layers": n, "model.decoder_layers": n}),
    "vocabulary": Sweep("vocabulary, ids", [1000 * 2**i for i in range(7)], lambda n: {"tokenizer.vocab_size": n}),
    "heads": Sweep("heads", [1, 2, 4, 8, 16, 32], lambda h: {"model.heads": h}),
}


def fail(message):
    raise SystemExit(f"scaling: {message}")


# ---- measuring

def measure(a, sweep, value):
    command = [a.polyhead, "bench", "train", a.config, "--threads", "1", "--repetitions", "1", "--profile", "--json",
               *map(str, sweep.arguments(value))]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        fail(f"status {result.returncode} of {' '.join(command)}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def measure_sweep(a, name):
    """{value: [report, ...]}, the values in turn in each round."""
    reports = {value: [] for value in SWEEPS[name].values}
    for round_number in range(1, a.rounds + 1):
        for value in reports:
            reports[value].append(measure(a, SWEEPS[name], value))
            print(f"{name} {value}, round {round_number} of {a.rounds}: "
                  f"{reports[value][-1]['seconds_per_step']:.4f} s a step", file=sys.stderr)
    return reports


# ---- figures

OP_CLASSES = {"MultiHeadAttention": "attention", "Linear": "linear", "ProjectedCrossEntropy": "output",
              "Adam": "optimizer", "global_norm": "optimizer"}
TIMES = ["attention", "linear", "output", "optimizer", "other"]


def point(report):
    """What one report says of an update: seconds in all and by class of op, bytes, FLOPs."""
    times = dict.fromkeys(TIMES, 0.0)
    for row in report["profile"]:
        times[OP_CLASSES.get(row["op"], "other")] += row["seconds"] / report["steps"]
    seconds = report["seconds_per_step"]
    times["other"] += seconds - sum(times.values())
    flops = report["flops_per_target_token"] * report["target_tokens_per_step"]
    return {"seconds": seconds, **times, "arena_bytes": report["arena_bytes"], "memory_bytes": report["peak_memory_bytes"],
            "parameters": report["parameters"], "flops": flops, "gflops": flops / seconds / 1e9,
            "limit_gflops": report["gemm_limit_gflops"]}


def summary(reports):
    """A row for each value: medians over rounds, and the spread of time, (largest − smallest)/median."""
    rows = []
    for value, rounds in reports.items():
        points = [point(report) for report in rounds]
        row = {key: statistics.median(p[key] for p in points) for key in points[0]}
        row["spread"] = (max(p["seconds"] for p in points) - min(p["seconds"] for p in points)) / row["seconds"]
        rows.append({"value": value, **row})
    return rows


def power_law(xs, ys):
    """y = c·x^exponent by least squares on logarithms: the exponent, its standard error, and the exponent between the last
    two points."""
    lx, ly = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_x, mean_y = statistics.fmean(lx), statistics.fmean(ly)
    square = sum((x - mean_x) ** 2 for x in lx)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(lx, ly)) / square
    rest = sum((y - mean_y - exponent * (x - mean_x)) ** 2 for x, y in zip(lx, ly))
    error = math.sqrt(rest / (len(lx) - 2) / square)
    return exponent, error, (ly[-1] - ly[-2]) / (lx[-1] - lx[-2])


FITTED = {"seconds": "time", "attention": "time in attention", "linear": "time in linear layers",
          "output": "time in output and loss", "optimizer": "time in the optimizer", "flops": "counted FLOPs",
          "arena_bytes": "activations and temporaries", "memory_bytes": "resident memory"}


def fits(rows):
    xs = [row["value"] for row in rows]
    return {key: power_law(xs, [row[key] for row in rows]) for key in FITTED}


def table(head, rows):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def tables(name, rows, exponents):
    mib = 2**20
    points = table([SWEEPS[name].label, "s a step", "spread", *TIMES, "GF/s", "arenas MiB", "resident MiB"],
                   [[str(r["value"]), f"{r['seconds']:.4g}", f"{100 * r['spread']:.0f}%", *(f"{r[key]:.3g}" for key in TIMES),
                     f"{r['gflops']:.0f}", f"{r['arena_bytes'] / mib:.1f}", f"{r['memory_bytes'] / mib:.0f}"] for r in rows])
    laws = table([f"grows as {name} to the power of", "fit", "standard error", "at the large end"],
                 [[FITTED[key], *(f"{x:.2f}" for x in law)] for key, law in exponents.items()])
    return f"## {name}\n\n{points}\n\n{laws}\n"


def write_tsv(path, rows):
    lines = ["\t".join(rows[0])] + ["\t".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in r.values()) for r in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


COLORS = {"seconds": "#000000", "attention": "#d95f02", "linear": "#1b9e77", "output": "#7570b3", "optimizer": "#e7298a",
          "arena_bytes": "#1b9e77", "memory_bytes": "#000000"}


def draw(name, tsv, svg, exponents):
    """Two log-log plots: seconds in all and by class of op; memory."""
    def curves(keys, scale):
        return ", ".join(
            f"'{tsv}' using 'value':(column('{key}')/{scale}) with linespoints pt 7 ps 0.5 lw {2 if key == 'seconds' else 1.5} "
            f"lc rgb '{COLORS[key]}' title '{FITTED[key].removeprefix('time in ')}, {exponents[key][2]:.2f}'" for key in keys)

    script = f"""
set terminal svg size 900,400 font 'sans-serif,12' background '#ffffff'
set output '{svg}'
set datafile separator tab; set datafile columnheaders
set logscale xy 2; set format x '%.0f'; set grid lc rgb '#dddddd'; set key outside bottom center maxrows 3
set xlabel '{SWEEPS[name].label}'
set multiplot layout 1,2
set logscale y 10; set format y '10^{{%T}}'; set title 'seconds an update (exponent at the large end)'
plot {curves(['seconds', 'attention', 'linear', 'output', 'optimizer'], 1)}
set logscale y 2; set format y '%.0f'; set title 'MiB (exponent at the large end)'
plot {curves(['arena_bytes', 'memory_bytes'], 2**20)}
"""
    result = subprocess.run(["gnuplot"], input=script, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        fail(f"gnuplot: {result.stderr.strip()}")


# ---- the whole

def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="*", metavar="SWEEP", help=f"of {', '.join(SWEEPS)}; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--polyhead", default="polyhead", help="the program")
    parser.add_argument("--config", default=str(ROOT / "experiments/performance/scaling/base.yaml"))
    parser.add_argument("--output", type=Path, default=ROOT / "experiments/performance/scaling", help="folder")
    parser.add_argument("--from", dest="reports", type=Path, help="scaling.json of an earlier run")
    a = parser.parse_args()
    for name in a.sweeps:
        if name not in SWEEPS:
            parser.error(f"{name}: expected one of {', '.join(SWEEPS)}")
    if a.rounds < 1:
        parser.error("--rounds: expected at least 1")
    return a


def main():
    a = parse_arguments()
    a.output.mkdir(parents=True, exist_ok=True)
    file = a.output / "scaling.json"
    result = json.loads((a.reports or file).read_text(encoding="utf-8")) if a.reports or file.exists() else {"sweeps": {}}
    for name in a.sweeps or SWEEPS:
        if not a.reports:
            result["sweeps"][name] = {"date": time.strftime("%Y-%m-%d"), "load_before": os.getloadavg()[0],
                                      "reports": list(measure_sweep(a, name).items())}
            file.write_text(json.dumps(result) + "\n", encoding="utf-8")
        rows = summary(dict(result["sweeps"][name]["reports"]))
        exponents = fits(rows)
        write_tsv(a.output / f"{name}.tsv", rows)
        draw(name, a.output / f"{name}.tsv", a.output / f"{name}.svg", exponents)
        print(tables(name, rows, exponents))


if __name__ == "__main__":
    main()
