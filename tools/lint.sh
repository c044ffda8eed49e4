#!/usr/bin/env bash
# Checks the format of all sources, and runs clang-tidy on those that differ from a revision.
# Usage: tools/lint.sh [REVISION]; the first parent of HEAD by default.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-$(git rev-parse --verify --quiet HEAD~1 || git rev-list --max-parents=0 HEAD)}

git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror
cmake --preset lint >/dev/null
changed=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'tools/*.cpp')
[ -z "$changed" ] || echo "$changed" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p build/lint 2>&1 | { grep -vE "^[0-9]+ warnings? (and [0-9]+ errors? )?generated|^Suppressed|^Use -header-filter" || true; }
