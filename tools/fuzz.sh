#!/usr/bin/env bash
# Gives every fuzzer of tests/fuzz/ new inputs, made from those in tests/fuzz/corpus/, and prints what each came to: inputs run,
# edges of the program covered, files of its corpus, seconds, and the input that failed, if one did; also in build/fuzz/report.txt.
# Usage: tools/fuzz.sh [SECONDS [TARGET...]]; 10 seconds each and all targets by default.
# What it finds interesting is kept in build/fuzz/corpus/, an input that fails in build/fuzz/found/: mend what fails and
# put the input into tests/fuzz/corpus/. Exit status 1 when one failed; the other fuzzers run all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

tools/install-dependencies.sh fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz

# last PATTERN LOG: what matches last; nothing where nothing does.
last() { grep -oP "$1" "$2" | tail -n 1 || true; }
row() { printf '%-14s %10s %8s %8s %8s  %s\n' "$@"; }

report=build/fuzz/report.txt failed=0
row fuzzer inputs edges corpus seconds failed | tee "$report"
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/found
  log=build/fuzz/$target.log begin=$SECONDS found=-
  # 10 seconds and 1 GiB are what no input of 64 KiB may take.
  "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" \
    > "$log" 2>&1 || {
    failed=1
    found=$(last 'Test unit written to \K.*' "$log")
    found=${found:-no input: see $log}
    tail -n 40 "$log" >&2
  }
  row "$target" "$(last 'number_of_executed_units: *\K[0-9]+' "$log")" "$(last ' cov: \K[0-9]+' "$log")" \
    "$(last ' corp: \K[0-9]+' "$log")" $((SECONDS - begin)) "$found" | tee -a "$report"
done
exit "$failed"
