// For tests: what the fuzz targets of this folder share. Inputs are damaged texts, and a digest over the damage may
// be made good again, or no input would ever get past it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/digest.h"

namespace firedrill::fuzz {

// Takes bytes off the front of an input; past its end everything is 0.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  std::string_view take(std::size_t most) {
    const std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// A manifest whose digest holds, whatever stands before its last 45 bytes.
inline std::string with_manifest_digest(std::string_view text) {
  constexpr std::size_t tail = 45;
  const std::string body(text.substr(0, text.size() < tail ? text.size() : text.size() - tail));
  return body + "\"digest\":\"" + digest_of(std::string_view(body)).hex() + "\"}\n";
}

// The same for the record of what an attempt has seen.
inline std::string with_seen_digest(std::string_view text) {
  constexpr std::size_t tail = 7 + 32 + 1;
  const std::string body(text.substr(0, text.size() < tail ? text.size() : text.size() - tail));
  return body + "digest " + digest_of(std::string_view(body)).hex() + "\n";
}

}  // namespace firedrill::fuzz
