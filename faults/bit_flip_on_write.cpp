// bit_flip_on_write: a write lands with one bit flipped on its way, in the middle of what was written.
#include "faults/flip.h"
#include "faults/kinds.h"

namespace firedrill {

Status take_bit_flip_on_write(const Firing& firing, Effects&) {
  Value& bytes = firing.call.file->bytes;
  if (bytes.size() > 0) bytes = with_bit_flipped(bytes, bytes.size() / 2, firing.fault);
  return {};
}

}  // namespace firedrill
