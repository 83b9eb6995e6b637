#include "engine/seam/collectives.h"

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {

Range shard_range(std::int64_t count, int shards, int index) {
  FD_CHECK(shards > 0 && index >= 0 && index < shards, "shard {} of {}", index, shards);
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t each = grains / shards;
  const std::int64_t longer = grains % shards;  // the first `longer` shards have one grain more
  const std::int64_t first = index * each + std::min<std::int64_t>(index, longer);
  const std::int64_t grains_here = each + (index < longer ? 1 : 0);
  return Range{.begin = std::min(first * grain, count), .end = std::min((first + grains_here) * grain, count)};
}

}  // namespace firedrill
