// Digest: 128 bits that stand for content. XXH3-128 (xxHash, https://xxhash.com), which gives the same result on every
// CPU. It finds accidents (torn, lost, flipped bytes), not forgers.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace firedrill {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Digest&) const = default;
  // 32 hexadecimal digits, high half first: the canonical form of XXH3-128.
  std::string hex() const;
  static std::optional<Digest> from_hex(std::string_view text);
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view text);
Digest digest_of(std::span<const std::uint64_t> words);

// A short list of words hashed as one, without allocation: `DigestBuilder().add(a).add(b).finish()`.
class DigestBuilder {
 public:
  DigestBuilder& add(std::uint64_t word) {
    if (used_ == capacity) fold();
    words_[used_++] = word;
    return *this;
  }
  DigestBuilder& add(const Digest& digest) { return add(digest.high).add(digest.low); }
  DigestBuilder& add(std::string_view text) { return add(digest_of(text)); }
  Digest finish() const;

 private:
  static constexpr std::size_t capacity = 32;
  void fold();
  std::array<std::uint64_t, capacity> words_;
  std::size_t used_ = 0;
};

// Bytes that come one part after another: the digest of them all, as digest_of gives it.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(const DigestStream&) = delete;
  DigestStream& operator=(const DigestStream&) = delete;
  DigestStream& add(std::span<const std::byte> bytes);
  Digest finish() const;
  // Begins anew.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firedrill

template <>
struct std::hash<firedrill::Digest> {
  std::size_t operator()(const firedrill::Digest& digest) const noexcept { return digest.low; }
};
