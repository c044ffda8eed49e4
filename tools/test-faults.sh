#!/usr/bin/env bash
# Lets every call fail that training, ablations and the commands that write files make to the system, with every kind of error
# in turn, and kills them more than 200 times; the tests that always run try a few of these. Takes some twenty minutes.
# Usage: tools/test-faults.sh [PRESET]; release by default. The last line of the tests, also in build/PRESET/faults.log, says how
# many calls failed and how many processes were killed; fewer than 200 of these are a failure as well.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
log=build/$preset/faults.log

cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target test_faults polyhead
POLYHEAD_ALL_FAULTS=1 "build/$preset/tests/test_faults" | tee "$log"
kills=$(grep -oP '^faults: .* \K[0-9]+(?= processes killed)' "$log")
[ "$kills" -ge 200 ] || { echo "only $kills processes were killed, expected at least 200" >&2; exit 1; }
