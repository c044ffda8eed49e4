#!/usr/bin/env bash
# Gives every fuzzer of tests/fuzz/ new inputs, made from those in tests/fuzz/corpus/.
# Usage: tools/fuzz.sh [SECONDS [TARGET...]]; 10 seconds each and all targets by default.
# What it finds interesting is kept in build/fuzz/corpus/, an input that fails in build/fuzz/found/: mend what fails and
# put the input into tests/fuzz/corpus/.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

tools/install-dependencies.sh fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz

for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/found
  # 10 seconds and 1 GiB are what no input of 64 KiB may take.
  "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" \
    > "build/fuzz/$target.log" 2>&1 || { tail -n 40 "build/fuzz/$target.log" >&2; echo "fuzz: $target failed" >&2; exit 1; }
  echo "fuzz: $target: $(grep -oP 'number_of_executed_units: *\K[0-9]+' "build/fuzz/$target.log") inputs"
done
