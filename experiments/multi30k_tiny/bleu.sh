#!/usr/bin/env bash
# Prints the step, the seconds of training until then and the BLEU on test of every EVERY-th checkpoint of a run. Needs jq.
# Usage: bleu.sh RUN [EVERY [POLYHEAD]]
set -euo pipefail
run=$1 every=${2:-3} polyhead=${3:-build/release/polyhead}
number=0
for checkpoint in "$run"/checkpoints/step-*.h5; do
  number=$((number + 1))
  [ $((number % every)) -eq 0 ] || continue
  step=$((10#$(basename "$checkpoint" .h5 | tr -dc 0-9)))
  seconds=$(jq -r "select(.step == $step and .seconds) | .seconds | floor" "$run/train.jsonl" | tail -n 1)
  bleu=$("$polyhead" evaluate "$checkpoint" --split test --metrics bleu --json | jq '.bleu.score * 100 | round / 100')
  printf '%s\t%s\t%s\n' "$step" "$seconds" "$bleu"
done
