// unreadable_shard: rows of the training text cannot be read.
#include "faults/kinds.h"

namespace firedrill {

Status take_unreadable_shard(const Firing&, Effects&) {
  return Error{.code = Code::io_error,
               .message = "the training text: input/output error",
               .hint = "a planned fault made this error",
               .injected = true};
}

}  // namespace firedrill
