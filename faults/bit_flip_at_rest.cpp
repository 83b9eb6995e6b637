// bit_flip_at_rest: a bit of a stored file has flipped since it was written; found when the file is opened or read
// (`when: before`), or just after somebody has read it well (`after`). It stays so.
#include "faults/flip.h"
#include "faults/kinds.h"

namespace firedrill {

Status take_bit_flip_at_rest(const Firing& firing, Effects& effects) {
  FD_TRY(const auto file, effects.storage().open(firing.call.path));
  FD_TRY(const std::int64_t size, file->size());
  if (size == 0) return {};
  FD_TRY(const Value byte, file->read(size / 2, 1));
  return effects.overwrite(firing.call.path, size / 2, with_bit_flipped(byte, 0, firing.fault));
}

}  // namespace firedrill
