// misdirected_write: a write lands where it should not, and nobody is told: further behind in the file, so that its own
// place reads as zeros, or over the beginning of the file that the rank wrote to before, whose sync was long done. That
// other file must lie in the same directory (the shards of one try); a rank that wrote none there hits its own file.
#include <algorithm>

#include "faults/kinds.h"

namespace firedrill {
namespace {

constexpr std::int64_t off_by = 4096;

}  // namespace

Status take_misdirected_write(const Firing& firing, Effects& effects) {
  FileCall& call = *firing.call.file;
  const std::string_view other = call.written_before;
  if (firing.spec.lands_in == Landing::offset || other.empty() || other == firing.call.path ||
      parent_path(other) != parent_path(firing.call.path)) {
    call.offset += off_by;
    return {};
  }
  FD_TRY(const auto victim, effects.storage().open(other));
  FD_TRY(const std::int64_t room, victim->size());
  const auto count = std::min<std::int64_t>(room, static_cast<std::int64_t>(call.bytes.size()));
  FD_TRY_VOID(effects.overwrite(other, 0, call.bytes.as_bytes().slice(0, count)));
  call.skipped = true;
  return {};
}

}  // namespace firedrill
