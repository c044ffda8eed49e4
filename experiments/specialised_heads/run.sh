#!/usr/bin/env bash
# For each seed: trains a model, tells what its heads do, and for each sparsity weight trains it on with learned gates, cuts out
# the heads whose gates closed, and evaluates what is left, beside a model of the same shape trained from scratch. What is in
# results/ is not made again. Usage: run.sh [POLYHEAD] [FOLDER OF THE RUNS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
polyhead=$(realpath "${1:-build/release/polyhead}")
runs=${2:-runs/specialised_heads}
config=$here/../../configs/grammar.yaml
mkdir -p "$runs" "$here/results"

measure() { # NAME, then the command that prints it
  local result=$here/results/$1.json
  [ ! -e "$result" ] || return 0
  "$polyhead" "${@:2}" --json >"$result.tmp"
  mv "$result.tmp" "$result"
  echo "$result"
}
train() { # NAME, then the arguments of polyhead train
  "$polyhead" train "${@:2}" --out "$runs/$1" --resume >"$runs/$1.log" 2>&1
}

for seed in 51 52 53; do
  full=full-$seed
  train "$full" "$config" --set "seed=$seed" --set model.heads=8 --set training.keep_last=1
  measure "$full" evaluate "$runs/$full" --split test
  measure "roles-$full" heads "$runs/$full" --split test --limit 1000
  for lambda in 0.01 0.03 0.1; do
    name=$seed-lambda-$lambda
    # The converged model with gates, at a constant low rate: what closes is what the loss can do without. Validated at the
    # end alone, so that the best checkpoint is the last.
    train "gates-$name" "$config" --set "seed=$seed" --set model.heads=8 --set training.keep_last=1 \
      --set "training.initial_checkpoint=$runs/$full" \
      --set "training.head_gates.lambda=$lambda" --set training.learning_rate=0.001 --set training.max_steps=1500 \
      --set training.schedule=constant --set training.validate_every=1500
    [ -e "$runs/pruned-$name.h5" ] ||
      "$polyhead" heads prune "$runs/gates-$name" --closed --out "$runs/pruned-$name.h5" --config "$runs/pruned-$name.yaml" \
        --json >"$here/results/heads-$name.json"
    measure "gates-$name" evaluate "$runs/gates-$name" --split test
    measure "pruned-$name" evaluate "$runs/pruned-$name.h5" --split test
    measure "roles-pruned-$name" heads "$runs/pruned-$name.h5" --split test --limit 1000
    train "scratch-$name" "$runs/pruned-$name.yaml" --set training.head_gates.lambda=0 --set training.initial_checkpoint=null
    measure "scratch-$name" evaluate "$runs/scratch-$name" --split test
  done
done
