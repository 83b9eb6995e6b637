#include "engine/data/corpus_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace firedrill {
namespace {

constexpr std::int64_t sequence = 4;

struct Fixture {
  Value text = Value::copy_of("abcdefghijklmnopq");  // 4 samples
  Value samples = Value::copy_of(std::vector<std::int64_t>{2, -1, 0});
  DirectCompute compute;
  CorpusInput input{compute, text, sequence};
  SampleDigests digests{text, sequence};
  Value rows = *input.rows(samples);

  Value tokens_with(std::size_t at, char byte) const {
    MutableValue changed(rows[0].dtype(), rows[0].shape());
    std::ranges::copy(rows[0].bytes(), changed.bytes().begin());
    changed.bytes()[at] = static_cast<std::byte>(byte);
    return std::move(changed).freeze();
  }
};

TEST(SampleDigests, AcceptTheRowsOfTheCorpus) {
  const Fixture f;
  EXPECT_EQ(std::string(f.rows[0].as_bytes().text().substr(0, 5)), "ijklm");
  EXPECT_TRUE(f.digests.verify(f.samples, f.rows));
}

TEST(SampleDigests, NoticeOneWrongByteAnywhereInASample) {
  const Fixture f;
  for (const std::size_t at : {0, 4, 10, 14}) {
    const Status status = f.digests.verify(f.samples, Value::pack({f.tokens_with(at, '!'), f.rows[1]}));
    ASSERT_TRUE(status.failed_with(Code::corrupted)) << at;
    EXPECT_NE(status.error().message.find(at < 5 ? "sample 2" : "sample 0"), std::string::npos);
  }
  EXPECT_TRUE(f.digests.verify(f.samples, Value::pack({f.tokens_with(7, '!'), f.rows[1]}))) << "an absent row";
}

TEST(SampleDigests, NoticeAnInputThatEndsEarly) {
  const Fixture f;
  const Value fewer =
      Value::pack({f.rows[0].as_bytes().slice(0, 10).reinterpret(DType::u8, Shape{2, 5}), f.rows[1].slice(0, 2)});
  const Status status = f.digests.verify(f.samples, fewer);
  ASSERT_TRUE(status.failed_with(Code::invalid_input));
  EXPECT_NE(status.error().message.find("sample 0 is missing"), std::string::npos);
}

TEST(SampleDigests, NoticeAMaskThatHidesASampleAndAnInputThatIsNone) {
  const Fixture f;
  MutableValue mask(DType::u8, Shape{3});
  std::ranges::fill(mask.bytes(), std::byte{0});
  EXPECT_TRUE(
      f.digests.verify(f.samples, Value::pack({f.rows[0], std::move(mask).freeze()})).failed_with(Code::corrupted));
  EXPECT_TRUE(f.digests.verify(f.samples, f.rows[0]).failed_with(Code::corrupted));
}

}  // namespace
}  // namespace firedrill
