// The judge of memory, and the check. It measures with the machine's probe.
#include "harness/preflight/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/preflight/check.h"

namespace firedrill::preflight {
namespace {

constexpr std::chrono::seconds deadline{20};

std::string bytes_text(std::int64_t bytes) { return rounded_bytes(static_cast<double>(bytes)); }

MemoryNeeds needs_of(const Options& options) {
  MemoryNeeds needs;
  for (int rank = 0; rank < options.layout.world_size(); ++rank) {
    const RankPlace place = place_of(options.job, options.layout, rank);
    needs.of_rank.push_back(memory_of(options.job, options.layout, place.pp, place.dp).total());
  }
  return needs;
}

}  // namespace

std::vector<Finding> judge_memory(const std::vector<MachineOfRank>& ranks, const MemoryNeeds& needs) {
  std::vector<Finding> findings;
  struct Host {
    std::int64_t needed = 0;
    std::int64_t available = 0;
    int ranks = 0;
  };
  std::map<std::string, Host> hosts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Host& host = hosts[ranks[i].host];
    host.needed += needs.of_rank[i];
    // Measured when all ranks were there, so what they hold without work is already gone from it.
    host.available = host.ranks == 0 ? ranks[i].memory_available : std::min(host.available, ranks[i].memory_available);
    ++host.ranks;
    const std::int64_t own = needs.of_rank[i] + ranks[i].memory_own;
    if (ranks[i].address_space < 0 || own <= ranks[i].address_space) continue;
    findings.push_back({Standing::no_go, fmt::format("a limit of {} address space", bytes_text(ranks[i].address_space)),
                        fmt::format("{} for this rank", bytes_text(own)),
                        fmt::format("rank {} on {}", i, ranks[i].host), "ulimit -v unlimited"});
  }
  for (const auto& [name, host] : hosts) {
    if (host.available < 0) {
      findings.push_back({Standing::unknown, "no number of the memory that is available", bytes_text(host.needed), name,
                          "mount /proc"});
      continue;
    }
    if (host.needed <= host.available) continue;
    findings.push_back({Standing::no_go, fmt::format("{} available", bytes_text(host.available)),
                        fmt::format("{} for {} ranks", bytes_text(host.needed), host.ranks), name,
                        "more dp ranks with a higher zero stage, fewer ranks on this host, or more memory "
                        "(`firedrill fit` names layouts that fit)"});
  }
  return findings;
}

CheckResult check_memory(Bench& bench) {
  CheckResult result;
  const Options& options = bench.options;
  if (options.job.device == Device::cuda) {
    result.findings.push_back({Standing::skipped, "the memory of GPUs is not measured", "", "the job's device is cuda",
                               "firedrill fit JOB --gpu-memory"});
    result.headline = result.findings.front().measured;
    return result;
  }
  const Result<std::vector<RankAnswer>> answers =
      bench.ask({{"probe", "machine"}, {"gpu", false}, {"native", options.job.numerics == Numerics::native}},
                options.layout.world_size(), deadline);
  if (!answers) {
    result.findings.push_back(
        {Standing::unknown, answers.error().message, "processes to look at", "this machine", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, "this machine", deadline, "look at what the rank was doing");
  if (!result.findings.empty()) return result;
  std::vector<MachineOfRank> ranks;
  for (const RankAnswer& answer : *answers) ranks.push_back(answer.measured.get<MachineOfRank>());
  const MemoryNeeds needs = needs_of(options);
  result.findings = judge_memory(ranks, needs);
  result.measured = {{"needed", needs.of_rank},
                     {"available", ranks.front().memory_available},
                     {"before_work", ranks.front().memory_own}};
  const std::int64_t most = *std::ranges::max_element(needs.of_rank);
  result.headline =
      fmt::format("the worst rank needs {} and {} before any work; {} free for {} ranks", bytes_text(most),
                  bytes_text(ranks.front().memory_own), bytes_text(ranks.front().memory_available), ranks.size());
  return result;
}

}  // namespace firedrill::preflight
