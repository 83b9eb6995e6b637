#include "engine/base/units.h"

#include <gtest/gtest.h>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

using std::chrono::nanoseconds;

TEST(Units, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("50us"), nanoseconds(50'000));
  EXPECT_EQ(parse_duration("1.5 ms"), nanoseconds(1'500'000));
  EXPECT_EQ(parse_duration("2min"), nanoseconds(120'000'000'000));
  EXPECT_EQ(parse_duration("0"), nanoseconds(0));
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("4KiB"), 4096);
  EXPECT_EQ(parse_bandwidth("25GB/s"), 25e9);
}

TEST(Units, RefusesWhatHasNoClearMeaning) {
  for (const char* text : {"", "50", "us", "-1us", "1.us", ".5s", "1 day", "0.5ns", "1e3s", "99999999999h", "5us "}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  for (const char* text : {"80", "80gb", "-1B", "0.1B", "9999999999TB"}) EXPECT_FALSE(parse_bytes(text)) << text;
  for (const char* text : {"25GB", "0GB/s", "GB/s", "25/s"}) EXPECT_FALSE(parse_bandwidth(text)) << text;
}

TEST(Units, PrintsInTheLargestWholeUnit) {
  EXPECT_EQ(format_duration(nanoseconds(60'000'000'000)), "1min");
  EXPECT_EQ(format_duration(nanoseconds(1'500'000)), "1500us");
  EXPECT_EQ(format_duration(nanoseconds(0)), "0ns");
  EXPECT_EQ(format_bytes(std::int64_t{80'000'000'000}), "80GB");
  EXPECT_EQ(format_bandwidth(25e9), "25GB/s");
}

TEST(Units, WhatIsPrintedParsesToTheSameValue) {
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    const auto count = static_cast<std::int64_t>(rng.below(1ULL << (1 + rng.below(60))));
    EXPECT_EQ(parse_duration(format_duration(nanoseconds(count))), nanoseconds(count));
    EXPECT_EQ(parse_bytes(format_bytes(count)), count);
    const double rate = static_cast<double>(count + 1) / 7.0;
    EXPECT_EQ(parse_bandwidth(format_bandwidth(rate)), rate);
  }
}

}  // namespace
}  // namespace firedrill
