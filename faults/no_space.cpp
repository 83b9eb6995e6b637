// no_space: an operation that needs room on the storage reports ENOSPC.
#include <fmt/format.h>

#include "faults/kinds.h"

namespace firedrill {

Status take_no_space(const Firing& firing, Effects&) {
  return Error{.code = Code::no_space,
               .message = fmt::format("{} of {}: no space left", to_string(firing.call.file_op), firing.call.path),
               .hint = "a planned fault made this error",
               .injected = true};
}

}  // namespace firedrill
