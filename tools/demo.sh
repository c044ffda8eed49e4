#!/usr/bin/env bash
# Sets everything up, trains the toy default (English number words to German), evaluates it and translates a few lines.
# Usage: tools/demo.sh [RUN_FOLDER]; run it again and it goes on where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/toy}

tools/install-dependencies.sh
cmake --preset release >/dev/null
cmake --build --preset release --target polyhead
polyhead=build/release/polyhead

"$polyhead" train --out "$run" --resume
"$polyhead" evaluate "$run" --split test --metrics exact_match,chrf,loss
echo
printf '%s\n' "two hundred thirty-one" "seventeen" "nine hundred ninety-nine thousand nine hundred ninety-nine" |
  "$polyhead" translate "$run"
