// Protobuf: the few wire types that a trace needs, appended to a string.
// Format: https://protobuf.dev/programming-guides/encoding. Threads: none shared. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firedrill {

class Protobuf {
 public:
  Protobuf& number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Protobuf& text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Protobuf& message(std::uint32_t field, const Protobuf& value) { return text(field, value.bytes_); }
  // All fields of another one, into this message.
  Protobuf& append(const Protobuf& fields) {
    bytes_ += fields.bytes_;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace firedrill
