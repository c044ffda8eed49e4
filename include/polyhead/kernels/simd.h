#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Vectors never cross a call that is not inlined, so their calling convention does not matter.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define POLYHEAD_INLINE [[gnu::always_inline]] inline

/// Arithmetic on 64 bytes at a time, written once with the vector types that GCC and clang share: one
/// register with AVX-512, two with AVX2, four with SSE. Lane i always holds element i, so results do not
/// depend on the machine's vector width nor on alignment.
namespace polyhead::kernels::simd {

template <class T>
struct Vector;
template <>
struct Vector<float> {
  typedef float type __attribute__((vector_size(64)));
  typedef std::int32_t integers __attribute__((vector_size(64)));
};
template <>
struct Vector<double> {
  typedef double type __attribute__((vector_size(64)));
  typedef std::int64_t integers __attribute__((vector_size(64)));
};
template <class T>
using Vec = typename Vector<T>::type;

/// Elements of a vector.
template <class T>
inline constexpr std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));

/// n rounded up to whole vectors.
template <class T>
constexpr std::int64_t round_up(std::int64_t n) {
  return (n + lanes<T> - 1) / lanes<T> * lanes<T>;
}

template <class T>
POLYHEAD_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
POLYHEAD_INLINE void store(T* p, const Vec<T>& v) {
  std::memcpy(p, &v, sizeof v);
}
/// x in every lane.
template <class T>
POLYHEAD_INLINE Vec<T> broadcast(T x) {
  return x - Vec<T>{};
}
/// The first n < lanes elements, `rest` in the other lanes; reads and writes no others.
template <class T>
POLYHEAD_INLINE Vec<T> load_first(const T* p, std::int64_t n, T rest) {
  Vec<T> v = broadcast(rest);
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) return _mm512_mask_loadu_ps(v, static_cast<__mmask16>((1U << n) - 1U), p);
  if constexpr (sizeof(T) == 8) return _mm512_mask_loadu_pd(v, static_cast<__mmask8>((1U << n) - 1U), p);
#endif
  for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <class T>
POLYHEAD_INLINE void store_first(T* p, std::int64_t n, const Vec<T>& v) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) return _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1U), v);
  if constexpr (sizeof(T) == 8) return _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1U << n) - 1U), v);
#endif
  for (std::int64_t i = 0; i < n; ++i) p[i] = v[i];
}

/// Lanes 0 … n − 1 of a, the others of b.
template <class T, std::int64_t... i>
POLYHEAD_INLINE Vec<T> select_first(std::int64_t n, const Vec<T>& a, const Vec<T>& b,
                                    std::integer_sequence<std::int64_t, i...>) {
  using Integers = typename Vector<T>::integers;
  using Integer = std::remove_cvref_t<decltype(Integers{}[0])>;
  const Integers lane = {static_cast<Integer>(i)...};
  return lane < static_cast<Integer>(n) - Integers{} ? a : b;
}
template <class T>
POLYHEAD_INLINE Vec<T> select_first(std::int64_t n, const Vec<T>& a, const Vec<T>& b) {
  return select_first<T>(n, a, b, std::make_integer_sequence<std::int64_t, lanes<T>>{});
}

/// a and b cut into pieces of h lanes: the even pieces of both (low) or the odd pieces of both (high),
/// alternating.
template <class T, std::int64_t h, std::int64_t... i>
POLYHEAD_INLINE Vec<T> low(const Vec<T>& a, const Vec<T>& b, std::integer_sequence<std::int64_t, i...>) {
  return __builtin_shufflevector(a, b, (i / h % 2 == 0 ? i : lanes<T> + i - h)...);
}
template <class T, std::int64_t h, std::int64_t... i>
POLYHEAD_INLINE Vec<T> high(const Vec<T>& a, const Vec<T>& b, std::integer_sequence<std::int64_t, i...>) {
  return __builtin_shufflevector(a, b, (i / h % 2 == 0 ? i + h : lanes<T> + i)...);
}

/// Transposes the square matrix whose rows are v.
template <class T, std::int64_t h = lanes<T> / 2>
POLYHEAD_INLINE void transpose(Vec<T> (&v)[lanes<T>]) {
  constexpr std::make_integer_sequence<std::int64_t, lanes<T>> all;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < lanes<T>; ++i) {
    if (i / h % 2 != 0) continue;
    const Vec<T> a = v[i], b = v[i + h];
    v[i] = low<T, h>(a, b, all);
    v[i + h] = high<T, h>(a, b, all);
  }
  if constexpr (h > 1) transpose<T, h / 2>(v);
}

/// Lane i of the result: the sum of the lanes of v[i]. Overwrites v.
template <class T, std::int64_t h = lanes<T> / 2>
POLYHEAD_INLINE Vec<T> sum_each(Vec<T> (&v)[lanes<T>]) {
  constexpr std::make_integer_sequence<std::int64_t, lanes<T>> all;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < h; ++i)
    v[i] = low<T, h>(v[i], v[i + h], all) + high<T, h>(v[i], v[i + h], all);
  if constexpr (h > 1) return sum_each<T, h / 2>(v);
  return v[0];
}

/// The lanes added up as a binary tree.
template <class T, std::int64_t h = lanes<T> / 2>
POLYHEAD_INLINE T sum(const Vec<T>& v) {
  constexpr std::make_integer_sequence<std::int64_t, lanes<T>> all;
  const Vec<T> folded = v + high<T, h>(v, v, all);
  if constexpr (h > 1) return sum<T, h / 2>(folded);
  return folded[0];
}
/// The larger of every lane: a where a > b, else b, so that NaN in b stays.
template <class T>
POLYHEAD_INLINE Vec<T> max(const Vec<T>& a, const Vec<T>& b) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) return _mm512_mask_max_ps(a, 0xFFFF, a, b);
  if constexpr (sizeof(T) == 8) return _mm512_mask_max_pd(a, 0xFF, a, b);
#endif
  return a > b ? a : b;
}
/// The smaller of every lane: a where a < b, else b.
template <class T>
POLYHEAD_INLINE Vec<T> min(const Vec<T>& a, const Vec<T>& b) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) return _mm512_mask_min_ps(a, 0xFFFF, a, b);
  if constexpr (sizeof(T) == 8) return _mm512_mask_min_pd(a, 0xFF, a, b);
#endif
  return a < b ? a : b;
}
/// The largest lane.
template <class T, std::int64_t h = lanes<T> / 2>
POLYHEAD_INLINE T max(const Vec<T>& v) {
  constexpr std::make_integer_sequence<std::int64_t, lanes<T>> all;
  const Vec<T> folded = max<T>(v, high<T, h>(v, v, all));
  if constexpr (h > 1) return max<T, h / 2>(folded);
  return folded[0];
}

/// exp of every lane: x = n·ln 2 + r with |r| <= ln 2 / 2 and ln 2 in two parts (Cody and Waite 1980), exp r
/// by a polynomial through the Chebyshev nodes, times 2ⁿ in two steps so that subnormal results are rounded
/// once.
POLYHEAD_INLINE Vec<float> exp(const Vec<float>& x) {
  using Integers = Vector<float>::integers;
  const Vec<float> c = min<float>(broadcast(89.0F), max<float>(broadcast(-104.0F), x));  // NaN passes both
  const Vec<float> magic = broadcast(12582912.0F);  // 1.5·2²³: adding it rounds to an integer
  const Vec<float> shifted = c * 1.44269504F + magic;
  const Vec<float> n = shifted - magic;
  const Vec<float> r = (c - n * 0.693359375F) + n * 2.12194440e-4F;
  Vec<float> p = r * 1.3926176e-3F + 8.3631731e-3F;
  p = p * r + 4.1666555e-2F;
  p = p * r + 1.66665770e-1F;
  p = p * r + 0.5F;
  p = (r * r) * p + r;
  p = p + 1.0F;
  const Integers exponent = reinterpret_cast<Integers>(shifted) - reinterpret_cast<Integers>(magic);
  const Integers low = exponent >> 1, high = exponent - low;
  return p * reinterpret_cast<Vec<float>>((low + 127) << 23) *
         reinterpret_cast<Vec<float>>((high + 127) << 23);
}
POLYHEAD_INLINE Vec<double> exp(const Vec<double>& x) {
  using Integers = Vector<double>::integers;
  const Vec<double> c = min<double>(broadcast(710.0), max<double>(broadcast(-746.0), x));
  const Vec<double> magic = broadcast(6755399441055744.0);  // 1.5·2⁵²
  const Vec<double> shifted = c * 1.4426950408889634074 + magic;
  const Vec<double> n = shifted - magic;
  const Vec<double> r = (c - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  Vec<double> p = r * 2.5100375832561233664e-8 + 2.7620075879983366586e-7;
  p = p * r + 2.7557268480310025526e-6;
  p = p * r + 2.4801521322368693266e-5;
  p = p * r + 1.9841269863040545271e-4;
  p = p * r + 1.3888888917196719077e-3;
  p = p * r + 8.3333333333300644495e-3;
  p = p * r + 4.1666666666624161903e-2;
  p = p * r + 1.6666666666666667452e-1;
  p = p * r + 5.0000000000000010211e-1;
  p = (r * r) * p + r;
  p = p + 1.0;
  const Integers exponent = reinterpret_cast<Integers>(shifted) - reinterpret_cast<Integers>(magic);
  const Integers low = exponent >> 1, high = exponent - low;
  return p * reinterpret_cast<Vec<double>>((low + 1023) << 52) *
         reinterpret_cast<Vec<double>>((high + 1023) << 52);
}

}  // namespace polyhead::kernels::simd
