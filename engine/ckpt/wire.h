// Bytes in a row: little-endian numbers and counted texts, for what kernels and ranks hand to each other and for shard
// headers. WireWriter appends; WireReader checks every bound, and after the first bad read gives zeros and says so in
// ok().
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/base/digest.h"
#include "engine/base/value.h"

namespace firedrill {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so must be the machine");

class WireWriter {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void digest(const Digest& digest) {
    number(digest.high);
    number(digest.low);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  void reserve(std::size_t size) { bytes_.reserve(size); }
  std::size_t size() const { return bytes_.size(); }
  std::string_view written() const { return bytes_; }
  Value value() const { return Value::copy_of(std::string_view(bytes_)); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    static_assert(std::is_integral_v<Number>);
    Number value = 0;
    const std::string_view bytes = raw(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  Digest digest() {
    Digest digest;
    digest.high = number<std::uint64_t>();
    digest.low = number<std::uint64_t>();
    return digest;
  }
  std::string_view text() { return raw(number<std::uint32_t>()); }
  // A count of items that take at least `item_size` bytes each: never more than the rest can hold.
  std::size_t count(std::size_t item_size) {
    const std::size_t n = number<std::uint32_t>();
    if (n > rest_.size() / item_size) ok_ = false;
    return ok_ ? n : 0;
  }
  std::string_view raw(std::size_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace firedrill
