// CheckpointId: which checkpoint. The attempt and the try are part of the name, so no name is ever used twice.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firedrill {

// Newer is greater.
struct CheckpointId {
  std::int64_t step = 0;
  std::int64_t attempt = 0;
  std::int64_t trial = 0;  // the try; `try` is a word of C++

  auto operator<=>(const CheckpointId&) const = default;
};

std::string to_string(const CheckpointId& id);  // "4-1-1"
// The canonical form only: no signs, no leading zeros.
std::optional<CheckpointId> checkpoint_id_from(std::string_view text);

}  // namespace firedrill
