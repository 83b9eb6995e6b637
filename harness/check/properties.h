// All properties, in the order in which reports show them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check/property.h"

namespace firedrill {

std::span<const Property> properties();
const Property* find_property(std::string_view name);

// Never throws: a property that does is unknown, with what it threw as evidence.
Verdict judge(const Property& property, const Case& run);

struct Judged {
  const Property* property = nullptr;
  Verdict verdict;
};
std::vector<Judged> judge_all(const Case& run);

// fail if one failed, else unknown if one is unknown, else pass.
Outcome overall(std::span<const Judged> judged);

// Where the run first left the golden, for reports; nothing if it never did.
struct FirstDifference {
  std::string tensor;
  std::int64_t step = 0;
  std::string how;    // what is different
  std::string where;  // the event that shows it: "step_done at step 4, rank 2, attempt 1"
};
std::optional<FirstDifference> first_difference(const Case& run);

}  // namespace firedrill
