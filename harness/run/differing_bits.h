// How much of a state is not the golden's.
#pragma once

#include <cstdint>

#include "harness/check/property.h"

namespace firedrill {

// The bits of all tensors that are not the golden's after the first step that differs; 0 if none does. A history has
// digests and no values, so a tensor counts whole: an upper bound, and 0 exactly if no bit differs.
std::int64_t differing_bits(const Case& run);

}  // namespace firedrill
