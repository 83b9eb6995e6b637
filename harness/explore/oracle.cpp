#include "harness/explore/oracle.h"

#include <fmt/format.h>

namespace firedrill {

std::string violation_of(const CheckAnswer& answer, const std::optional<CheckpointId>& required) {
  if (answer.fresh) {
    if (!required) return {};
    return fmt::format("{} was acknowledged, and the job would begin at step 0", to_string(*required));
  }
  if (!answer.restored) {
    return required ? fmt::format("{} was acknowledged, and nothing can be restored: {}", to_string(*required),
                                  answer.trouble)
                    : fmt::format("nothing can be restored, nor begun: {}", answer.trouble);
  }
  if (required && *answer.found < *required) {
    return fmt::format("{} was acknowledged, and {} was restored", to_string(*required), to_string(*answer.found));
  }
  if (!answer.golden) return fmt::format("{} was found and restored: {}", to_string(*answer.found), answer.trouble);
  return {};
}

}  // namespace firedrill
