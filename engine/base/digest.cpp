#include "engine/base/digest.h"

#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1  // gcc does not inline through function pointers at -Og
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/base/wide_hash.h"

namespace firedrill {
namespace {

const bool is_wide = has_wide_hash();
constexpr std::size_t long_from = 256;  // shorter inputs gain nothing

Digest hash(const void* data, std::size_t size) {
  if (size >= long_from && is_wide) {
    Digest digest;
    wide_hash(data, size, digest.high, digest.low);
    return digest;
  }
  const XXH128_hash_t value = XXH3_128bits(data, size);
  return Digest{.high = value.high64, .low = value.low64};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = "0123456789abcdef"[high >> (60 - 4 * i) & 15];
    text[16 + i] = "0123456789abcdef"[low >> (60 - 4 * i) & 15];
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return std::nullopt;
    halves[i / 16] = halves[i / 16] << 4 | static_cast<std::uint64_t>(digit);
  }
  return Digest{.high = halves[0], .low = halves[1]};
}

Digest digest_of(std::span<const std::byte> bytes) { return hash(bytes.data(), bytes.size()); }
Digest digest_of(std::string_view text) { return hash(text.data(), text.size()); }
Digest digest_of(std::span<const std::uint64_t> words) { return hash(words.data(), words.size_bytes()); }

void DigestBuilder::fold() {
  const Digest folded = finish();
  words_[0] = folded.high;
  words_[1] = folded.low;
  used_ = 2;
}

Digest DigestBuilder::finish() const { return digest_of(std::span(words_.data(), used_)); }

struct DigestStream::State {
  XXH3_state_t hash;
};

DigestStream::DigestStream() : state_(std::make_unique<State>()) { reset(); }
DigestStream::~DigestStream() = default;

DigestStream& DigestStream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
  return *this;
}

Digest DigestStream::finish() const {
  const XXH128_hash_t value = XXH3_128bits_digest(&state_->hash);
  return Digest{.high = value.high64, .low = value.low64};
}

void DigestStream::reset() { XXH3_128bits_reset(&state_->hash); }

}  // namespace firedrill
