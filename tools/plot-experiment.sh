#!/usr/bin/env bash
# Draws what an experiment says as SVG: means over seeds with their 95% t intervals against a key of the grid, a line a split
# and control. Needs gnuplot and jq. Usage: tools/plot-experiment.sh EXPERIMENT_FOLDER OUT.svg KEY METRIC SPLIT...
set -euo pipefail
fail() { echo "plot-experiment: $*" >&2; exit "${status:-4}"; }
[ $# -ge 5 ] || status=2 fail "usage: tools/plot-experiment.sh EXPERIMENT_FOLDER OUT.svg KEY METRIC SPLIT..."
summary=$1/summary.jsonl out=$2 key=$3 metric=$4
[ -s "$summary" ] || fail "$summary: missing or empty, expected what polyhead ablate writes"
for program in gnuplot jq; do command -v "$program" >/dev/null || fail "$program is not installed"; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
controls=$(jq -r .control "$summary" | awk '!seen[$0]++')
lines=()
for split in "${@:5}"; do
  for control in $controls; do
    points=$work/$split-$control
    jq -r --arg key "$key" --arg metric "$metric" --arg split "$split" --arg control "$control" \
      'select(.split == $split and .metric == $metric and .control == $control and .phenomenon == null and .grid[$key] != null)
       | "\(.grid[$key]) \(.mean) \(.low // .mean) \(.high // .mean)"' "$summary" | sort -n >"$points"
    [ -s "$points" ] || fail "$summary: no $metric of $split against $key under the control $control"
    # A title is text, not markup: without this "a_b" is drawn with a subscript.
    title=$split
    [ "$controls" = "$control" ] || title+=", $control"
    lines+=("'$points' using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.5 title '$title' noenhanced")
  done
done
plots=$(printf '%s, ' "${lines[@]}")
gnuplot <<END
set terminal svg size 800,420 font 'sans-serif,13' background '#ffffff'
set output '$out'
set colorsequence podo
set logscale x 2
set offsets graph 0.05, graph 0.05, 0, 0
set xlabel '$key' noenhanced; set ylabel '$metric' noenhanced
set grid lc rgb '#dddddd'; set key outside right
plot ${plots%, }
END
