#!/usr/bin/env bash
# Sets everything up and runs all tests. Usage: tools/test.sh [PRESET]; release by default.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

tools/install-dependencies.sh "$preset"
# libomp itself is not instrumented: Archer, which it loads, tells the sanitizer what it synchronises.
[ "$preset" != thread ] || export TSAN_OPTIONS=ignore_noninstrumented_modules=1
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(nproc)"
