#include "engine/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace firedrill {
namespace {

// What a 16-bit pattern means, by the definition of the format, in double.
double meaning(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * HUGE_VAL;
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

struct Format {
  int exponent_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint16_t infinity;
};
const Format formats[] = {{8, widen_bf16, narrow_bf16, 0x7F80}, {5, widen_f16, narrow_f16, 0x7C00}};

TEST(Half, EveryPatternWidensToWhatItMeansAndComesBack) {
  for (const Format& format : formats) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      const double expected = meaning(pattern, format.exponent_bits);
      const float wide = format.widen(pattern);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << bits;
      } else {
        ASSERT_EQ(static_cast<double>(wide), expected) << bits;
        ASSERT_EQ(format.narrow(wide), pattern) << bits;
      }
    }
  }
}

TEST(Half, NarrowingTakesTheNearestAndTheEvenOneOfTwo) {
  for (const Format& format : formats) {
    for (std::uint16_t low = 0; low + 1 < format.infinity; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      const float a = format.widen(low);
      const float b = format.widen(high);
      const float middle = a + (b - a) / 2;
      ASSERT_EQ(format.narrow(middle), low % 2 == 0 ? low : high) << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, 0.0F)), low) << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, b)), high) << low;
      ASSERT_EQ(format.narrow(-middle), 0x8000 | (low % 2 == 0 ? low : high)) << low;
    }
  }
}

TEST(Half, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(narrow_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(narrow_f16(65520.0F), 0x7C00);
  EXPECT_EQ(narrow_f16(-1e30F), 0xFC00);
  EXPECT_EQ(narrow_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(narrow_f16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(narrow_f16(1e-30F), 0);
}

TEST(Half, ValuesAreConvertedPartByPart) {
  const Value numbers = Value::copy_of(std::span<const float>(std::vector<float>{1.0F, 1.00390625F, 1e6F}));
  const Value bytes = Value::copy_of("tokens");
  const Value narrow = narrowed(Value::pack({numbers, numbers}), DType::f16);
  EXPECT_EQ(narrow[1].dtype(), DType::f16);
  EXPECT_EQ(narrow[1].size(), 6U);
  const Value wide = widened(Value::pack({narrow[0], bytes, Value()}));
  EXPECT_EQ(wide[0].as<float>()[1], 1.00390625F);
  EXPECT_TRUE(std::isinf(wide[0].as<float>()[2]));
  EXPECT_TRUE(wide[1].same_as(bytes));
  EXPECT_FALSE(wide[2]);
  EXPECT_TRUE(narrowed(numbers, DType::f32).same_as(numbers));
  float rounded[] = {1.00390625F};
  round_to(DType::bf16, rounded);
  EXPECT_EQ(rounded[0], 1.0F);
}

}  // namespace
}  // namespace firedrill
