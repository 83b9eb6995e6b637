// exception: the code of a step throws on one rank, as a library that is handed something it does not like does.
#include <fmt/format.h>

#include <stdexcept>

#include "faults/kinds.h"

namespace firedrill {

Status take_exception(const Firing& firing, Effects&) {
  throw std::runtime_error(fmt::format("a planned fault threw this in {}", firing.position.phase == Phase::none
                                                                               ? std::string_view("a step")
                                                                               : to_string(firing.position.phase)));
}

}  // namespace firedrill
