#!/usr/bin/env bash
# Breaks lines of backward code one at a time, in a copy of the sources, and tells which tests notice each: those of the op, and
# only where they do not, all others of the same folder.
# Usage: tools/mutate.sh [FOLDER]; build/mutate by default, where only what changed since is built again. Fails when a mutant passes
# all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/mutate}"
folder=$(cd "${1:-build/mutate}" && pwd)
source=$folder/source build=$folder/build

mkdir -p "$source"
cp -ru CMakeLists.txt cmake configs include src tests tools "$source"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" >/dev/null

build_tests() {
  cmake --build "$build" --target "test_$1" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
}
# test_notices FOLDER TESTS: whether one of these tests of the folder fails.
test_notices() {
  ! timeout 600 "$build/tests/test_$1" --gtest_filter="$2" --gtest_brief=1 --gtest_fail_fast >"$folder/log" 2>&1
}
build_tests ops
if test_notices ops '*'; then echo "the tests fail without a mutant"; exit 1; fi

# A file, tests of it, what stands there once, and what is put in its place.
mutants() {
  cat <<'LIST'
src/ops/softmax.cpp
Softmax.*
dx[i] += p[i] * (dy[i] - sum);
dx[i] += p[i] * (dy[i] + sum);
src/ops/softmax.cpp
Softmax.*
dx[i] += dy[i] - p[i] * sum;
dx[i] += dy[i] - sum;
src/ops/layer_norm.cpp
LayerNorm.*
(gamma[i] * g[i] - sum - (x[i] - mean) * rstd * dot) * rstd
(gamma[i] * g[i] - (x[i] - mean) * rstd * dot) * rstd
src/ops/layer_norm.cpp
LayerNorm.*
dot += gamma[i] * g[i] * ((x[i] - mean) * rstd);
dot += g[i] * ((x[i] - mean) * rstd);
src/ops/layer_norm.cpp
LayerNorm.*
sum[i] += g[i] * ((row[i] - mean) * rstd);
sum[i] += g[i] * (row[i] - mean);
src/ops/linear.cpp
Linear.*
if (dbias) add_bias(row, dbias.as<T>(), n);
if (dbias && r > 0) add_bias(row, dbias.as<T>(), n);
src/ops/linear.cpp
Linear.*
left, operand(exec, weight), dx.tensor, true);
left, operand(exec, weight), dx.tensor, false);
src/ops/linear.cpp
Linear.*
left, saved.x, dweight.tensor, true);
left, saved.x, dweight.tensor, false);
src/ops/activate.cpp
Activate.*
return y <= T{0} ? Vec<T>{} : simd::broadcast(T{1});
return y < T{0} ? Vec<T>{} : simd::broadcast(T{1});
src/ops/activate.cpp
Activate.*
return s + x * s * (T{1} - s);
return s + x * s;
src/ops/activate.cpp
Activate.*
return n.distribution + x * n.density;
return n.distribution - x * n.density;
src/ops/cross_entropy.cpp
*CrossEntropy*
-= static_cast<T>(1 - op.label_smoothing);
-= T{1};
src/ops/cross_entropy.cpp
*CrossEntropy*
z[j] = z[j] * scale - uniform;
z[j] = z[j] * scale + uniform;
src/ops/cross_entropy.cpp
*CrossEntropy*
const T scale = std::exp(shifts[t * count + i] - rows[i].max) / rows[i].sum;
const T scale = std::exp(shifts[i] - rows[i].max) / rows[i].sum;
src/ops/attention_head.h
Attention.*
(effective * simd::load(dw + j) - magnitude * delta) * outer
(effective * simd::load(dw + j) + magnitude * delta) * outer
src/ops/attention_head.h
Attention.*
outer = gate * head.factor;
outer = gate;
src/ops/attention_short.cpp
Attention.*
gradients.gate_gradient += delta;
gradients.gate_gradient -= delta;
src/ops/attention_long.cpp
Attention.*
output + (first + i) * head.value_dim, head.value_dim);
output + i * head.value_dim, head.value_dim);
src/ops/embedding.cpp
Embedding.*
to[i] += factor * from[i];
to[i] = factor * from[i];
src/ops/dropout.cpp
ResidualDropout.*
if (df) add_masked(exec, p, site, segments, dy, df);
if (df) add_masked(exec, p, site + 1, segments, dy, df);
src/ops/elementwise.cpp
Elementwise.*
add_each<T>(da, [g, q = b.as<T>()](std::int64_t i) { return g[i] * q[i]; });
add_each<T>(da, [g, q = a.as<T>()](std::int64_t i) { return g[i] * q[i]; });
src/ops/hard_concrete.cpp
HardConcrete.*
static_cast<double>(dy.as<T>()[i]) * slope * s * (1 - s));
static_cast<double>(dy.as<T>()[i]) * slope * s);
src/ops/attention_short.cpp
Attention.*
head.q[first], head.q.stride, dk[begin], dk.stride, true);
head.q[0], head.q.stride, dk[begin], dk.stride, true);
src/ops/attention_overlap.cpp
AttentionOverlap.*
row[j] *= factor * (sum[j] - mean);
row[j] *= factor * (sum[j] + mean);
LIST
}

file="" count=0 survivors=0
trap '[ -z "$file" ] || cp "$file" "$source/$file"' EXIT
while IFS= read -r file && IFS= read -r tests && IFS= read -r old && IFS= read -r new; do
  count=$((count + 1))
  OLD=$old NEW=$new perl -0777 -pi -e '(() = /\Q$ENV{OLD}\E/g) == 1 or die "not there once: $ENV{OLD}\n"; s/\Q$ENV{OLD}\E/$ENV{NEW}/' "$source/$file"
  test_folder=${file#src/} test_folder=${test_folder%%/*}
  build_tests "$test_folder"
  if test_notices "$test_folder" "$tests" || test_notices "$test_folder" '*'; then
    found=$(grep -oE '^\[  FAILED  \] [A-Za-z]+[./][A-Za-z0-9/._]+' "$folder/log" | awk '{ print $4 }' | sort -u | head -n 3 | paste -sd ' ') || found="a crash, or no end"
  else
    found="NO TEST NOTICES"
    survivors=$((survivors + 1))
  fi
  printf '%2d  %s\n    - %s\n    + %s\n    %s\n' "$count" "$file" "$old" "$new" "$found"
  cp "$file" "$source/$file"
done < <(mutants)
echo "$((count - survivors)) of $count mutants were noticed"
[ "$survivors" -eq 0 ]
