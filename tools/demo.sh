#!/usr/bin/env bash
# Sets everything up, trains the default (the toy translation language), evaluates it by what its sentences test,
# translates a few of them, and compares numbers of heads in a small ablation with a report. Usage: tools/demo.sh
# [RUN_FOLDER]; run it again and it goes on where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/grammar}

tools/install-dependencies.sh
cmake --preset release >/dev/null
cmake --build --preset release --target polyhead
polyhead=build/release/polyhead

"$polyhead" train --out "$run" --resume
"$polyhead" evaluate "$run" --split test --metrics exact_match,chrf,loss
echo
"$polyhead" data grammar --out "$run/sentences" --splits test --overwrite
head -n 4 "$run/sentences/test.en" >"$run/some.en"
"$polyhead" translate "$run" <"$run/some.en" | paste -d '\n' "$run/some.en" -
echo
"$polyhead" ablate experiments/demo/experiment.yaml --out "${run}_heads"
"$polyhead" report "${run}_heads"
