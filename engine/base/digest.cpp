#include "engine/base/digest.h"

#include <bit>

#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1  // gcc does not inline through function pointers at -Og
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

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

// The number that 8 hexadecimal digits in small letters stand for, all at once: manifests hold thousands.
std::optional<std::uint64_t> number_of_8(const char* digits) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t ones = 0x0101010101010101;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, digits, sizeof(bytes));
  std::uint64_t values = (bytes & 0x0F * ones) + (bytes >> 6 & ones) * 9;
  const std::uint64_t letters = (values + 6 * ones) >> 4 & ones;
  if ((values & 0xF0 * ones) != 0 || values + 0x30 * ones + 0x27 * letters != bytes) return std::nullopt;
  values = __builtin_bswap64(values);  // the first digit counts most
  values = (values | values >> 4) & 0x00FF00FF00FF00FF;
  values = (values | values >> 8) & 0x0000FFFF0000FFFF;
  return (values | values >> 16) & 0xFFFFFFFF;
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
  std::array<std::uint64_t, 4> quarters{};
  for (std::size_t i = 0; i < quarters.size(); ++i) {
    const auto number = number_of_8(text.data() + 8 * i);
    if (!number) return std::nullopt;
    quarters[i] = *number;
  }
  return Digest{.high = quarters[0] << 32 | quarters[1], .low = quarters[2] << 32 | quarters[3]};
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
