#!/usr/bin/env bash
# Trains models of sixteen heads, one a seed, and takes heads away from them: one at a time, all but one of a layer, and one
# after the other by importance, by kind of attention. What is in results/ is not made again.
# Usage: run.sh [POLYHEAD] [FOLDER OF THE RUNS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
polyhead=$(realpath "${1:-build/release/polyhead}")
runs=${2:-runs/sixteen_heads}
config=$here/../../configs/grammar.yaml
mkdir -p "$runs" "$here/results"

measure() { # NAME, then arguments of polyhead heads
  local result=$here/results/$1.json
  [ ! -e "$result" ] || return 0
  "$polyhead" heads "${@:2}" --json >"$result.tmp"
  mv "$result.tmp" "$result"
  echo "$result"
}

for seed in 41 42 43; do
  run=$runs/seed-$seed
  "$polyhead" train "$config" --out "$run" --resume --set "seed=$seed" --set model.heads=16 --set training.keep_last=1 >"$run.log" 2>&1
  measure "masking-$seed" mask "$run" --limit 500
  measure "all_but_one-$seed" mask "$run" --limit 500 --all-but-one
  measure "importance-$seed" importance "$run" --limit 1000
  measure "curve-$seed" curve "$run" --limit 200 --metrics loss exact_match --orders importance random --draws 2
done
