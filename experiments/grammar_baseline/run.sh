#!/usr/bin/env bash
# Trains and evaluates one and eight heads in models of one and two layers, five seeds each, two cells at a time on one
# thread each; cells whose results are there are left alone. Usage: run.sh [POLYHEAD] [FOLDER OF THE RUNS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
polyhead=$(realpath "${1:-build/release/polyhead}")
runs=${2:-runs/grammar_baseline}
mkdir -p "$runs" "$here/results"

cell() {
  local layers=$1 seed=$2 heads=$3 name="layers-$1-heads-$3-seed-$2"
  [ ! -e "$here/results/$name.json" ] || return 0
  "$polyhead" train "$here/config.yaml" --out "$runs/$name" --resume --threads 1 --set "seed=$seed" --set "model.heads=$heads" \
    --set "model.encoder_layers=$layers" --set "model.decoder_layers=$layers" >"$runs/$name.log" 2>&1
  "$polyhead" evaluate "$runs/$name" --split all --threads 1 --json >"$runs/$name.json" 2>>"$runs/$name.log"
  mv "$runs/$name.json" "$here/results/$name.json"
  echo "$name done"
}
export -f cell
export here polyhead runs

for layers in 1 2; do for seed in 11 12 13 14 15; do for heads in 1 8; do echo "$layers $seed $heads"; done; done; done |
  xargs -P 2 -L 1 bash -euo pipefail -c 'cell "$@"' cell
"$here/compare.py" "$here"/results/*.json | tee "$here/results.txt"
