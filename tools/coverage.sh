#!/usr/bin/env bash
# Prints which share of the lines of src/, include/ and tools/polyhead/ the tests run: file by file, and of all. Fails below 90%.
# Usage: tools/coverage.sh [FOLDER [TESTS...]]; build/coverage and the tests of all folders of tests/ by default.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/coverage}
shift || true
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(core config tensor kernels ops autograd nn text data metrics decode train heads experiment
                                 tools edges faults fuzz structure)

tools/install-dependencies.sh coverage
# A type of its own: bits of losses are kept by the type of the build.
cmake --preset release -B "$folder" -DCMAKE_BUILD_TYPE=Coverage \
  -DCMAKE_CXX_FLAGS_COVERAGE="-O1 --coverage -fprofile-update=atomic" >/dev/null
cmake --build "$folder" --target "${tests[@]/#/test_}"
find "$folder" \( -name '*.gcda' -o -name '*CompilerId*.gcno' \) -delete
failed=0
for test in "${tests[@]}"; do
  "$(find "$folder/tests" -name "test_$test" -type f)" --gtest_brief=1 || failed=1
done
gcovr --root . --object-directory "$folder" --filter src/ --filter include/ \
  --filter tools/polyhead/ --sort-percentage --fail-under-line 90
exit "$failed"
