// Structure: a state without its Values, as bytes that a kernel can take. Names, types, places, which shard each group
// goes to and which groups are replicated.
#pragma once

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/ckpt/state.h"

namespace firedrill {

Value encode_structure(const StateView& state);
// Errors: corrupted. The groups' Values are empty.
Result<StateView> decode_structure(const Value& encoded);
// Equal but for the Values.
bool same_structure(const StateView& a, const StateView& b);
// `a` with the Values left out.
StateView structure_only(const StateView& state);

// A run of a tensor that one rank saves: elements [begin, end) of it, at `flat` of the group's Value.
struct TensorRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t flat = 0;
};

// What rank `rank` of `ranks` saves of a tensor: all of it if the group is not replicated, else what lies in its share
// among the group's holders, in whole grains. Empty runs have begin == end.
TensorRun share_of(const StateGroup& group, const TensorSlot& tensor, int ranks, int rank);

}  // namespace firedrill
