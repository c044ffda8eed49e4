#!/usr/bin/env bash
# Installs what the build and the tests need, from Debian's (or Ubuntu's) packages. Does nothing where all is there.
# Usage: tools/install-dependencies.sh [PRESET | coverage | bench]; the presets thread and fuzz need a second compiler,
# coverage what tools/coverage.sh counts lines with, bench what tools/bench/ compares and draws with.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git ca-certificates        # build
  libeigen3-dev libdnnl-dev                                   # dense maths, matrix products
  libhdf5-dev libssl-dev                                      # checkpoints and their digests
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev  # configuration, JSON, command line, messages
  libsentencepiece-dev libicu-dev zlib1g-dev                  # text
  node-d3                                                     # charts in the pages of polyhead report
  libgtest-dev libgmock-dev libbenchmark-dev                  # tests, and times of single ops
  clang-format clang-tidy                                     # lint
)

[ "${1:-}" != thread ] || packages+=(clang libomp-dev)
[ "${1:-}" != fuzz ] || packages+=(clang libclang-rt-14-dev libomp-dev)
[ "${1:-}" != coverage ] || packages+=(gcovr)
# Tests draw those pages in a browser. Ubuntu has none as a package; there they are skipped.
if [ "${1:-bench}" != bench ] && grep -qx ID=debian /etc/os-release; then packages+=(chromium-headless-shell); fi
[ "${1:-}" != bench ] || packages+=(python3-torch python3-h5py libopenblas0-openmp gnuplot-nox)

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-dependencies: not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
