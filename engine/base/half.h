// The two 16-bit floats: bf16 (8 bits of exponent, 7 of fraction) and f16 (IEEE binary16: 5 and 10). Widening is exact;
// narrowing rounds to nearest, ties to even, and what is too large becomes infinite. A NaN stays one.
//
// Integer arithmetic and exact float additions only: the same bits on every CPU.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "engine/base/value.h"

namespace firedrill {

inline float widen_bf16(std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

inline std::uint16_t narrow_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

inline float widen_f16(std::uint16_t x) {
  constexpr std::uint32_t exponent = 0x7C00U << 13;
  std::uint32_t bits = static_cast<std::uint32_t>(x & 0x7FFFU) << 13;
  const std::uint32_t own = bits & exponent;
  bits += (127U - 15U) << 23;
  if (own == exponent) bits += (128U - 16U) << 23;  // infinity and NaN
  if (own == 0) {                                   // zero and subnormal: the subtraction puts the leading bit right
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits + (1U << 23)) - 0x1p-14F);
  }
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(x & 0x8000U) << 16);
}

inline std::uint16_t narrow_f16(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000U;
  bits ^= sign;
  std::uint32_t out = 0;
  if (bits >= 0x47800000U) {  // 65536 and more, infinity, NaN
    out = bits > 0x7F800000U ? 0x7E00U : 0x7C00U;
  } else if (bits < 0x38800000U) {  // below 2^-14: adding 1/2 lets the addition round to steps of 2^-24
    out = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3F000000U;
  } else {
    bits += 0xC8000FFFU + (bits >> 13 & 1U);  // exponent bias 15 instead of 127, and the rounding
    out = bits >> 13;
  }
  return static_cast<std::uint16_t>(out | sign >> 16);
}

// f32 of the same shape. A pack is widened part by part; what is neither bf16 nor f16 is left as it is.
Value widened(const Value& value);
// bf16 or f16 of an f32 Value, the same shape; with f32 the Value itself. A pack is narrowed part by part.
Value narrowed(const Value& value, DType dtype);
// Each number becomes the nearest that `dtype` has: narrowed and widened again. f32 changes nothing.
void round_to(DType dtype, std::span<float> numbers);

}  // namespace firedrill
