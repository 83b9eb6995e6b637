#include "engine/seam/checkpoint_id.h"

#include <charconv>
#include <iterator>

namespace firedrill {

std::string to_string(const CheckpointId& id) {
  char text[3 * 20 + 2];
  char* at = text;
  for (const std::int64_t field : {id.step, id.attempt, id.trial}) {
    if (at != text) *at++ = '-';
    if (field >= 0 && field < 10) {
      *at++ = static_cast<char>('0' + field);
    } else {
      at = std::to_chars(at, std::end(text), field).ptr;
    }
  }
  return {text, at};
}

// Every name on the disk comes by here at every look at it, so nothing is allocated.
std::optional<CheckpointId> checkpoint_id_from(std::string_view text) {
  CheckpointId id;
  std::int64_t* const fields[] = {&id.step, &id.attempt, &id.trial};
  constexpr std::ptrdiff_t safe_digits = 18;  // that many always fit
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    if (i > 0 && (at == end || *at++ != '-')) return std::nullopt;
    const char* const begin = at;
    std::int64_t number = 0;
    while (at != end && *at >= '0' && *at <= '9' && at - begin < safe_digits) number = number * 10 + (*at++ - '0');
    // Only as to_string writes it: no sign, and no zero in front.
    if (at == begin || (*begin == '0' && at - begin > 1)) return std::nullopt;
    if (at - begin == safe_digits) {
      const auto [stop, error] = std::from_chars(begin, end, number);
      if (error != std::errc{}) return std::nullopt;
      at = stop;
    }
    *fields[i] = number;
  }
  return at == end ? std::optional(id) : std::nullopt;
}

}  // namespace firedrill
