// short_write: only the first half of a write lands, and whoever wrote it did not look at how much did: it is reported
// as done. A write of one byte is dropped.
#include "faults/kinds.h"

namespace firedrill {

Status take_short_write(const Firing& firing, Effects&) {
  Value& bytes = firing.call.file->bytes;
  bytes = bytes.as_bytes().slice(0, static_cast<std::int64_t>(bytes.size()) / 2);
  return {};
}

}  // namespace firedrill
