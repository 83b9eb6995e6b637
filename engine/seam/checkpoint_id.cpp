#include "engine/seam/checkpoint_id.h"

#include <charconv>
#include <iterator>

namespace firedrill {

std::string to_string(const CheckpointId& id) {
  char text[3 * 20 + 2];
  char* at = text;
  for (const std::int64_t field : {id.step, id.attempt, id.trial}) {
    if (at != text) *at++ = '-';
    at = std::to_chars(at, std::end(text), field).ptr;
  }
  return {text, at};
}

// Every name on the disk comes by here at every look at it, so nothing is allocated.
std::optional<CheckpointId> checkpoint_id_from(std::string_view text) {
  CheckpointId id;
  std::int64_t* const fields[] = {&id.step, &id.attempt, &id.trial};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    if (i > 0 && (at == end || *at++ != '-')) return std::nullopt;
    // Only as to_string writes it: no sign, and no zero in front.
    if (at == end || *at < '0' || *at > '9' || (*at == '0' && at + 1 != end && at[1] >= '0' && at[1] <= '9')) {
      return std::nullopt;
    }
    const auto [stop, error] = std::from_chars(at, end, *fields[i]);
    if (error != std::errc{}) return std::nullopt;
    at = stop;
  }
  return at == end ? std::optional(id) : std::nullopt;
}

}  // namespace firedrill
