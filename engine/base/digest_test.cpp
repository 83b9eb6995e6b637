#include "engine/base/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace firedrill {
namespace {

TEST(DigestStream, GivesTheDigestOfAllItsPartsAsOne) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  DigestStream stream;
  for (const std::size_t part : {std::size_t{1}, std::size_t{0}, std::size_t{63}, std::size_t{300}, text.size()}) {
    stream.reset();
    for (std::size_t at = 0; at < bytes.size(); at += part + 1) {
      stream.add(bytes.subspan(at, std::min(part + 1, bytes.size() - at)));
    }
    EXPECT_EQ(stream.finish(), digest_of(bytes)) << part;
  }
  stream.reset();
  EXPECT_EQ(stream.finish(), digest_of(std::string_view()));
}

// Long inputs in one piece go another way than streams: through the widest registers there are.
TEST(Digest, IsTheSameInOnePieceAndStreamedForEveryLength) {
  std::string text;
  DigestStream stream;
  for (int size = 0; size < 2100; ++size) {
    stream.reset();
    stream.add(std::as_bytes(std::span(text)));
    ASSERT_EQ(digest_of(text), stream.finish()) << size << " bytes";
    text += static_cast<char>(size * 31 + size / 256);
  }
}

TEST(Digest, OnlyHexadecimalDigitsInSmallLettersAreRead) {
  const Digest digest{.high = 0x0123456789ABCDEF, .low = 0xFEDCBA9876543210};
  const std::string hex = digest.hex();
  EXPECT_EQ(hex, "0123456789abcdeffedcba9876543210");
  for (std::size_t at = 0; at < hex.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string changed = hex;
      changed[at] = static_cast<char>(c);
      const auto read = Digest::from_hex(changed);
      const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      ASSERT_EQ(read.has_value(), is_digit) << changed;
      ASSERT_EQ(read ? read->hex() : changed, changed);
    }
  }
}

}  // namespace
}  // namespace firedrill
