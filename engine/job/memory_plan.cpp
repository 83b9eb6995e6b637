// The plan of all ranks of a layout, from what each one holds; see memory.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/job/memory.h"

namespace firedrill {
namespace {

std::int64_t reserve_of(std::int64_t gpu_memory) { return gpu_memory / 10; }

}  // namespace

std::string rounded_bytes(double bytes) {
  static constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 999.5 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f}{}", bytes, unit < 2 || std::abs(bytes) >= 100 ? 0 : 1, units[unit]);
}

MemoryPlan plan_memory(const Job& job, const Layout& layout, const MemoryOptions& options) {
  MemoryPlan plan{.gpu_memory = options.gpu_memory, .reserve = reserve_of(options.gpu_memory)};
  const int together = layout.cp * layout.tp;  // ranks of one (pp, dp)
  for (int pp = 0; pp < layout.pp; ++pp) {
    const std::size_t first = plan.classes.size();
    const int in_flight = micro_batches_in_flight(job, layout, pp);
    for (int dp = 0; dp < layout.dp; ++dp) {
      const RankMemory memory = memory_of(job, layout, pp, dp, options.accumulators);
      const auto known = std::find_if(plan.classes.begin() + static_cast<std::ptrdiff_t>(first), plan.classes.end(),
                                      [&memory](const RankClass& other) { return other.memory == memory; });
      if (known != plan.classes.end()) {
        known->ranks += together;
      } else {
        plan.classes.push_back({.pp = pp,
                                .first_rank = (pp * layout.dp + dp) * together,
                                .ranks = together,
                                .in_flight = in_flight,
                                .memory = memory});
      }
    }
  }
  for (std::size_t i = 0; i < plan.classes.size(); ++i) {
    if (plan.classes[i].memory.total() > plan.classes[plan.worst].memory.total()) plan.worst = i;
  }
  return plan;
}

std::int64_t memory_needed(const Job& job, const Layout& layout, const MemoryOptions& options) {
  std::int64_t most = 0;
  // Shards are rounded down to whole grains: no dp rank has more than the last.
  for (int pp = 0; pp < layout.pp; ++pp)
    most = std::max(most, memory_of(job, layout, pp, layout.dp - 1, options.accumulators).total());
  return most + reserve_of(options.gpu_memory);
}

}  // namespace firedrill
