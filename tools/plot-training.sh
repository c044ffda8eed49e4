#!/usr/bin/env bash
# Draws a run's loss, validation loss and token accuracy over updates as SVG. Needs gnuplot and jq.
# Usage: tools/plot-training.sh RUN_FOLDER OUT.svg
set -euo pipefail
fail() { echo "plot-training: $*" >&2; exit "${status:-4}"; }
[ $# -eq 2 ] || status=2 fail "usage: tools/plot-training.sh RUN_FOLDER OUT.svg"
log=$1/train.jsonl
[ -s "$log" ] || fail "$log: missing or empty, expected the log of a training run"
for program in gnuplot jq; do command -v "$program" >/dev/null || fail "$program is not installed"; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The loss of an update jumps about: means of 20.
jq -r 'select(.loss) | "\(.step) \(.negative_log_likelihood)"' "$log" |
  awk '{sum += $2; if (++n == 20) {print $1 - 10, sum / n; sum = n = 0}}' >"$work/train"
jq -r 'select(.validation) | "\(.step) \(.validation.loss) \(.validation.token_accuracy)"' "$log" >"$work/valid"
[ -s "$work/train" ] || fail "$log: fewer than 20 updates"
valid=""
[ -s "$work/valid" ] && valid=", '$work/valid' using 1:2 with lines lw 2 lc rgb '#d95f02' title 'validation loss', \
  '$work/valid' using 1:3 axes x1y2 with lines lw 2 dt 2 lc rgb '#7570b3' title 'validation token accuracy, %'"
gnuplot <<END
set terminal svg size 800,420 font 'sans-serif,13' background '#ffffff'
set output '$2'
set xlabel 'update'; set ylabel 'nats per target token'; set y2label 'token accuracy, %'
set y2tics; set ytics nomirror; set y2range [0:100]; set yrange [0:*]; set grid lc rgb '#dddddd'; set key top center
plot '$work/train' using 1:2 with lines lw 1.5 lc rgb '#1b9e77' title 'training loss (unsmoothed, with dropout)' $valid
END
