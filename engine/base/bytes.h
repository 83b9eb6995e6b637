// ByteWriter and ByteReader: plain records as bytes, little-endian, for frames between processes and for serialised
// Values. A reader never reads behind its end: what is missing comes as zero and ok() turns false, so a caller may read
// a whole record and check once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/digest.h"

namespace firedrill {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

class ByteWriter {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) ByteWriter& number(T value) {
    return raw(std::as_bytes(std::span(&value, 1)));
  }
  ByteWriter& digest(const Digest& digest) { return number(digest.high).number(digest.low); }
  // Length, then the characters.
  ByteWriter& text(std::string_view text) {
    return number(static_cast<std::uint32_t>(text.size())).raw(std::as_bytes(std::span(text)));
  }
  ByteWriter& raw(std::span<const std::byte> bytes) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data() + before, bytes.data(), bytes.size());
    return *this;
  }

  ByteWriter& reserve(std::size_t size) {
    bytes_.reserve(size);
    return *this;
  }

  // Replaces what was written at `offset` before.
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T number() {
    T value{};
    const std::span<const std::byte> bytes = raw(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  Digest digest() {
    const auto high = number<std::uint64_t>();
    return Digest{.high = high, .low = number<std::uint64_t>()};
  }
  std::string_view text() {
    const std::span<const std::byte> bytes = raw(number<std::uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Exactly `size` bytes, or none.
  std::span<const std::byte> raw(std::uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::span<const std::byte> bytes = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }

  // Everything that was asked for was there.
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace firedrill
