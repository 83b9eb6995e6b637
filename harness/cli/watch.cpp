#include "harness/cli/watch.h"

#include <ostream>

#include "harness/report/told.h"

namespace firedrill {

std::function<void(const History&, std::size_t)> watch_on(std::ostream& out) {
  return [&out](const History& history, std::size_t from) {
    for (const Event& event : history.events().subspan(from)) {
      if (const auto told = told_of(history, event)) out << line_of(event, *told) << '\n';
    }
    out << std::flush;
  };
}

}  // namespace firedrill
