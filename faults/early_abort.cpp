// early_abort: the rank gives up: all its waits end, its peers see it gone, and its call reports that it was aborted.
#include "faults/kinds.h"

namespace firedrill {

Status take_early_abort(const Firing& firing, Effects&) {
  firing.call.collective->aborts = true;
  return Error{.code = Code::aborted, .message = "this rank gave up by a planned fault", .injected = true};
}

}  // namespace firedrill
