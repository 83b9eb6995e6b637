// Flat shards: the run of a segment's flat Value that one dp rank holds with ZeRO (Rajbhandari et al., "ZeRO: memory
// optimizations toward training trillion parameter models", SC'20), and the whole again from all ranks' runs.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "engine/train/holdings.h"
#include "engine/train/network.h"
#include "engine/train/optimizer.h"

namespace firedrill {

// Elements [range.begin, range.end) of `whole`.
Result<Value> cut_shard(Compute& compute, const Value& whole, const Range& range);

// The wholes, from this rank's shard of each of the segments: one exchange over the dp group, and one over the ranks
// among which the own experts' shards lie. Errors: those of the seams, mismatch.
Result<std::vector<Value>> join_shards(const NetworkContext& context, std::span<const std::size_t> segments,
                                       std::span<const Value> shards, std::string_view purpose);
// Of whole segments: shards that do not make up what the model says are a mismatch.
Result<std::vector<Value>> join_segments(const NetworkContext& context, std::span<const std::size_t> segments,
                                         std::span<const Value> shards, std::string_view purpose);

}  // namespace firedrill
