// failed_sync: a sync reports EIO, once. The system has marked the pages clean all the same, so what was to become
// durable never does: a later sync of the same file finds nothing to do and reports success. Reads still give it, until
// the power fails. (How Linux treats a failed writeback: "Can Applications Recover from fsync Failures?", Rebello et
// al., USENIX ATC 2020.)
#include <fmt/format.h>

#include "faults/kinds.h"

namespace firedrill {

Status take_failed_sync(const Firing& firing, Effects& effects) {
  effects.forget_unsynced(firing.call.file_op, firing.call.path);
  return Error{.code = Code::io_error,
               .message = fmt::format("{} of {}: input/output error", to_string(firing.call.file_op), firing.call.path),
               .hint = "a planned fault made this error",
               .injected = true};
}

}  // namespace firedrill
