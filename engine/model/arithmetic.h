// Exponential, logarithm, sums and softmax from IEEE +, -, *, / alone, in an order that the source fixes.
//
// Why not libm: glibc's expf has a variant for CPUs with fused multiply-add, chosen when the program starts, and its
// last bit is not promised to be that of the other one. What is written here gives the same bits on every CPU, four
// numbers at a time.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace firedrill {

// Natural logarithm of a positive normal number, to about 1e-15 relative: ln m * 2^e by the series of atanh.
inline double portable_log(double x) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  if (exponent == 1024) return x;  // infinity and NaN
  bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  const auto m = std::bit_cast<double>(bits);  // in [1, 2)
  const bool upper = m > 1.41421356237309505;
  const double z = upper ? (m * 0.5 - 1) / (m * 0.5 + 1) : (m - 1) / (m + 1);
  const double square = z * z;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return 2 * z * series + static_cast<double>(exponent + (upper ? 1 : 0)) * 0.693147180559945309;
}

// Four numbers in one register; arithmetic, comparison and ?: work on all of them.
typedef float Four __attribute__((vector_size(16)));
typedef std::uint32_t FourWords __attribute__((vector_size(16)));

// The first `count` of four; the others are zero.
template <class Count = std::integral_constant<std::int64_t, 4>>
Four load(const float* from, Count count = {}) {
  Four four{};
  std::memcpy(&four, from, static_cast<std::size_t>(count) * sizeof(float));
  return four;
}

template <class Count>
void store(const Four& four, float* to, Count count) {
  std::memcpy(to, &four, static_cast<std::size_t>(count) * sizeof(float));
}

// Calls body(i, count) for runs of four of [0, n), then for what is left; `count` is a constant but for the last.
template <class Body>
void by_fours(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) body(i, std::integral_constant<std::int64_t, 4>{});
  if (i < n) body(i, n - i);
}

// e^x to about 1e-7 relative; 0 below -87, constant above 88; NaN stays NaN. Cody and Waite's reduction by n * ln 2
// with the polynomial of Cephes (S. Moshier, expf.c).
inline Four portable_exp(const Four& x) {
  constexpr float round_magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
  const Four clamped = x > 88.0F ? Four{} + 88.0F : x;
  const Four shifted = clamped * 1.44269504088896341F + round_magic;
  const Four n = shifted - round_magic;
  const Four r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  Four p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const Four mantissa = p * (r * r) + r + 1.0F;
  const Four power = std::bit_cast<Four>((std::bit_cast<FourWords>(shifted) + 127U) << 23);  // 2^n
  return x < -87.0F ? Four{} : mantissa * power;
}

// Correctly rounded, as IEEE 754 demands of every square root.
inline Four square_root(const Four& x) {
#if defined(__SSE__)
  return _mm_sqrt_ps(x);
#else
  return Four{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
#endif
}

// The sum of term(i) for i in [0, n): eight partial sums side by side, then a tree, then what is left over one by one.
// `four(i)` gives terms i to i + 3, `one(i)` term i.
template <class FourTerms, class OneTerm>
float sum_of(std::int64_t n, FourTerms four, OneTerm one) {
  Four a{};
  Four b{};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    a += four(i);
    b += four(i + 4);
  }
  a += b;
  float sum = (a[0] + a[2]) + (a[1] + a[3]);
  for (; i < n; ++i) sum += one(i);
  return sum;
}

inline float sum_of(const float* x, std::int64_t n) {
  return sum_of(
      n, [x](std::int64_t i) { return load(x + i); }, [x](std::int64_t i) { return x[i]; });
}

// A NaN may be passed over; it comes back through the exponential of what is subtracted from.
inline float max_of(const float* x, std::int64_t n) {
  Four four = Four{} - std::numeric_limits<float>::infinity();
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Four next = load(x + i);
    four = next > four ? next : four;
  }
  float max = -std::numeric_limits<float>::infinity();
  for (int lane = 0; lane < 4; ++lane) max = four[lane] > max ? four[lane] : max;
  for (; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// x[0, n) becomes e^(scale * x - max): returns the sum. `scale` > 0.
inline float exponentiate(float* x, std::int64_t n, float scale) {
  const float max = max_of(x, n) * scale;
  by_fours(n, [=](std::int64_t i, auto count) { store(portable_exp(load(x + i, count) * scale - max), x + i, count); });
  return sum_of(x, n);
}

inline void softmax_in_place(float* x, std::int64_t n, float scale) {
  const float inverse = 1.0F / exponentiate(x, n, scale);
  for (std::int64_t i = 0; i < n; ++i) x[i] *= inverse;
}

}  // namespace firedrill
