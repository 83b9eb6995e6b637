#include "harness/cli/watch.h"

#include <ostream>

#include "harness/report/told.h"

namespace firedrill {

std::function<void(const History&, const Event&)> watch_on(std::ostream& out) {
  return [&out](const History& history, const Event& event) {
    if (const auto told = told_of(history, event)) out << line_of(event, *told) << '\n' << std::flush;
  };
}

}  // namespace firedrill
