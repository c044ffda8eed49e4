#!/usr/bin/env python3
"""Compares one head with eight, paired by seed: compare.py RESULT.json ...

Planned contrasts: slot accuracy of each phenomenon on its own split, and exact match on the test split and on each
generalisation split. Two-sided paired t-tests over seeds (Student 1908), all of them corrected together by Holm's method
(Holm 1979).
"""
import json
import math
import re
import statistics
import sys
from collections import defaultdict

WHOLE = ("test", "length", "depth", "composition", "attractors")


def read(paths):
    """{(layers, split): {heads: {seed: percent}}}"""
    cells = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        layers, heads, seed = map(int, re.search(r"layers-(\d+)-heads-(\d+)-seed-(\d+)\.json$", path).groups())
        with open(path, encoding="utf-8") as file:
            splits = json.load(file)["splits"]
        for split, scores in splits.items():
            score = scores["exact_match"] if split in WHOLE else scores["phenomena"][split]["slot_accuracy"]
            cells[layers, split][heads][seed] = score["score"]
    return cells


def p_two_sided(t, df):
    """P(|T| >= |t|) of Student's t (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    theta = math.atan(abs(t) / math.sqrt(df))
    term, total = (1.0, 1.0) if df % 2 == 0 else (math.cos(theta), math.cos(theta) if df > 1 else 0.0)
    for k in range(2 if df % 2 else 1, df - 2, 2):
        term *= k / (k + 1) * math.cos(theta) ** 2
        total += term
    inside = math.sin(theta) * total
    return 1 - (inside if df % 2 == 0 else 2 / math.pi * (theta + inside))


def holm(ps):
    order, adjusted, largest = sorted(range(len(ps)), key=ps.__getitem__), [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = largest
    return adjusted


def main():
    rows = []
    for (layers, split), by_heads in sorted(read(sys.argv[1:]).items()):
        seeds = sorted(by_heads[1].keys() & by_heads[8].keys())
        differences = [by_heads[8][s] - by_heads[1][s] for s in seeds]
        mean, error = statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(seeds))
        p = p_two_sided(mean / error, len(seeds) - 1) if error > 0 else float(mean == 0)
        rows.append((layers, split, statistics.mean(by_heads[1][s] for s in seeds),
                     statistics.mean(by_heads[8][s] for s in seeds), mean, error, len(seeds), p))
    print("| layers | split | measure | 1 head | 8 heads | difference | standard error | seeds | p | p (Holm) |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row, adjusted in zip(rows, holm([row[-1] for row in rows])):
        layers, split, one, eight, mean, error, seeds, p = row
        measure = "exact match" if split in WHOLE else "slot accuracy"
        mark = "*" if adjusted < 0.05 else ""
        print(f"| {layers} | {split} | {measure} | {one:.2f} | {eight:.2f} | {mean:+.2f} | {error:.2f} | {seeds} | "
              f"{p:.4f} | {adjusted:.4f}{mark} |")


if __name__ == "__main__":
    main()
