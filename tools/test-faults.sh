#!/usr/bin/env bash
# Lets every call fail that training, ablations and the commands that write files make to the system, with every kind of error
# in turn, and kills them more than 200 times; the tests that always run try a few of these. Takes some twenty minutes.
# Usage: tools/test-faults.sh [PRESET]; release by default.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target test_faults polyhead
POLYHEAD_ALL_FAULTS=1 "build/$preset/tests/test_faults"
