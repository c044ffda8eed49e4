#!/usr/bin/env bash
# Installs a release build into a temporary folder, then builds and runs a project that finds it with find_package.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --preset release >/dev/null
cmake --build --preset release
cmake --install build/release --prefix "$work/prefix" >/dev/null
cmake -S tests/install -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/example"
"$work/prefix/bin/polyhead" --version
