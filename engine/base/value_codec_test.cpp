#include "engine/base/value_codec.h"

#include <gtest/gtest.h>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

Value sample() {
  const std::vector<float> numbers = {1.5F, -2.0F, 0.25F};
  const std::vector<std::int64_t> words = {7, -8};
  const Value matrix = Value::copy_of(DType::bf16, Shape{2, 3}, std::vector<std::byte>(12, std::byte{9}));
  return Value::pack({Value::copy_of(std::span<const float>(numbers)), Value(),
                      Value::pack({Value::copy_of(std::span<const std::int64_t>(words)), matrix}),
                      Value::copy_of(std::string_view("")), Value::pack({})});
}

TEST(ValueCodec, ParseGivesBackWhatWasSerialised) {
  const Value value = sample();
  const Result<Value> parsed = parse(serialise(value));
  ASSERT_TRUE(parsed) << describe(parsed.error());
  EXPECT_EQ(parsed->key(), value.key());
  EXPECT_EQ((*parsed)[2][1].shape(), (Shape{2, 3}));
  EXPECT_FALSE((*parsed)[1]);
}

TEST(ValueCodec, AnEmptyValueAndAScalarSurvive) {
  const Result<Value> empty = parse(serialise(Value()));
  ASSERT_TRUE(empty);
  EXPECT_FALSE(*empty);
  const Value scalar = Value::copy_of(DType::f32, Shape{}, std::vector<std::byte>(4, std::byte{1}));
  const Result<Value> parsed = parse(serialise(scalar));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->same_as(scalar));
}

TEST(ValueCodec, EveryTruncationIsCorrupted) {
  const std::vector<std::byte> bytes = serialise(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(parse(std::span(bytes).first(size)).failed_with(Code::corrupted)) << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_TRUE(parse(longer).failed_with(Code::corrupted));
}

TEST(ValueCodec, GarbageNeverCrashesAndNeverAllocatesMoreThanItHas) {
  const std::vector<std::byte> good = serialise(sample());
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = good;
    const int flips = static_cast<int>(1 + rng.below(6));
    for (int i = 0; i < flips; ++i) bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
    const Result<Value> parsed = parse(bytes);
    if (!parsed) {
      EXPECT_EQ(parsed.error().code, Code::corrupted);
    } else if (*parsed) {
      EXPECT_LE(parsed->bytes_total(), bytes.size());
    }
  }
}

TEST(ValueCodec, AHugeShapeIsRefusedBeforeItIsAllocated) {
  const Value value = Value::copy_of(DType::u8, Shape{1, 1}, std::vector<std::byte>(1));
  std::vector<std::byte> outline = outline_of(value);
  for (std::size_t i = 2; i < outline.size(); ++i) outline[i] = (i - 2) % 8 == 7 ? std::byte{0x7F} : std::byte{0xFF};
  EXPECT_TRUE(ValueBuilder::from_outline(outline, 1'000'000).failed_with(Code::corrupted));
}

TEST(ValueCodec, ABuilderTakesItsBuffersInTheOrderTheyAreSent) {
  const Value value = sample();
  Result<ValueBuilder> builder = ValueBuilder::from_outline(outline_of(value), 1'000);
  ASSERT_TRUE(builder);
  const std::vector<std::span<const std::byte>> sent = buffers_of(value);
  const std::vector<std::span<std::byte>> received = builder->buffers();
  ASSERT_EQ(sent.size(), received.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(sent[i].size(), received[i].size());
    std::memcpy(received[i].data(), sent[i].data(), sent[i].size());
  }
  EXPECT_EQ(std::move(*builder).finish().key(), value.key());
}

}  // namespace
}  // namespace firedrill
