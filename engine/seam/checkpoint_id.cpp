#include "engine/seam/checkpoint_id.h"

#include <fmt/format.h>

#include "engine/base/text.h"

namespace firedrill {

std::string to_string(const CheckpointId& id) { return fmt::format("{}-{}-{}", id.step, id.attempt, id.trial); }

std::optional<CheckpointId> checkpoint_id_from(std::string_view text) {
  const std::vector<std::string> parts = split(text, '-');
  if (parts.size() != 3) return std::nullopt;
  CheckpointId id;
  std::int64_t* const fields[] = {&id.step, &id.attempt, &id.trial};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::uint64_t> number = parse_whole(parts[i]);
    if (!number || *number > INT64_MAX || fmt::format("{}", *number) != parts[i]) return std::nullopt;
    *fields[i] = static_cast<std::int64_t>(*number);
  }
  return id;
}

}  // namespace firedrill
