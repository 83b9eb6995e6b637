#include "engine/seam/collectives.h"

#include <algorithm>

#include "engine/base/check.h"

namespace firedrill {

Range shard_range(std::int64_t count, int shards, int index) {
  FD_CHECK(shards > 0 && index >= 0 && index < shards, "shard {} of {}", index, shards);
  const std::int64_t grains = (count + grain - 1) / grain;
  // Cut points that nest: shard i of n is shards i * k to (i + 1) * k of n * k, so a rank that owns several dp lanes
  // holds just what the lanes' own ranks would.
  const auto cut = [&](int i) { return std::min(grains * i / shards * grain, count); };
  return Range{.begin = cut(index), .end = cut(index + 1)};
}

}  // namespace firedrill
