// What a collective call is called in fingerprints, faults and histories, and which stream of calls it belongs to.
//
// A stream is what two ranks can count alike: the collective calls of a group, or what one member sends another. Its
// name says who is in it: "dp[0-3]", "model[0-1,8-9]", "cp[0-6/2]" (every second rank), "pp[0>4]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/seam/collectives.h"

namespace firedrill {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  all_to_all,
  send,
  recv,
};
inline constexpr int collective_op_count = static_cast<int>(CollectiveOp::recv) + 1;
std::string_view to_string(CollectiveOp op);
std::string_view to_string(ReduceOp op);

// Of the collective calls of a group.
std::string stream_of(const Group& group);
// Of what member `from` sends to member `to` (indices in the group).
std::string stream_of(const Group& group, int from, int to);
// The ranks that a stream's name lists; of "pp[0>4]" the sender first. Empty: it is no name of a stream.
std::vector<int> ranks_of_stream(std::string_view stream);

}  // namespace firedrill
