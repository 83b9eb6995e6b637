// io_error: a file operation reports EIO. With `when: before` nothing was done; with `after` it was done and yet
// reported as failed, which a correct engine must take for not done.
#include <fmt/format.h>

#include "faults/kinds.h"

namespace firedrill {

Status take_io_error(const Firing& firing, Effects&) {
  return Error{.code = Code::io_error,
               .message = fmt::format("{} of {}: input/output error", to_string(firing.call.file_op), firing.call.path),
               .hint = "a planned fault made this error",
               .injected = true};
}

}  // namespace firedrill
