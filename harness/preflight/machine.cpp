// The judge of machines, and the check.
#include "harness/preflight/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/job/memory.h"
#include "harness/preflight/check.h"

namespace firedrill::preflight {
namespace {

constexpr std::int64_t files_of_a_rank = 64;  // shards, catalog, lines to the supervisor; and one for each peer
constexpr std::int64_t threads_of_a_rank = 8;
constexpr std::int64_t shared_of_a_rank = 64 * 1024;
constexpr std::int64_t shared_of_a_gpu_rank = 64 * 1024 * 1024;  // NCCL's buffers
constexpr std::int64_t clock_tolerance = 1'000'000'000;          // nothing decides by clocks; people compare logs
constexpr std::chrono::seconds deadline{20};

std::string limit_text(std::int64_t limit) { return limit < 0 ? "no limit" : fmt::format("{}", limit); }

std::string bytes_text(std::int64_t bytes) { return rounded_bytes(static_cast<double>(bytes)); }

using Ranks = std::vector<MachineOfRank>;

void judge_limits(const Ranks& ranks, const MachineNeeds& needs, std::vector<Finding>& findings) {
  std::map<std::string, int> on_host;
  for (const MachineOfRank& rank : ranks) ++on_host[rank.host];
  const auto low = [](std::int64_t limit, std::int64_t needed) { return limit >= 0 && limit < needed; };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const MachineOfRank& rank = ranks[i];
    const int beside = on_host[rank.host];
    const std::string where = fmt::format("rank {} on {}", i, rank.host);
    const std::int64_t files = files_of_a_rank + needs.ranks;
    if (low(rank.files, files)) {
      findings.push_back({Standing::no_go, fmt::format("a limit of {} open files", rank.files),
                          fmt::format("{} ({} and one for each of {} ranks)", files, files_of_a_rank, needs.ranks),
                          where, fmt::format("ulimit -n {}", files)});
    }
    const std::int64_t processes = threads_of_a_rank * beside;
    if (low(rank.processes, processes)) {
      findings.push_back({Standing::no_go, fmt::format("a limit of {} processes and threads", rank.processes),
                          fmt::format("{} ({} for each of {} ranks)", processes, threads_of_a_rank, beside), where,
                          fmt::format("ulimit -u {}, and room for what else runs", processes)});
    }
    const std::int64_t shared = (needs.gpu ? shared_of_a_gpu_rank : shared_of_a_rank) * beside;
    if (rank.shared_memory < shared) {
      findings.push_back({Standing::no_go, fmt::format("{} free in /dev/shm", bytes_text(rank.shared_memory)),
                          fmt::format("{} for {} ranks", bytes_text(shared), beside), where,
                          "remove what lies there, or mount it larger (of a container: --shm-size)"});
    }
    if (needs.gpu && low(rank.locked_memory, shared_of_a_gpu_rank)) {
      findings.push_back({Standing::note, fmt::format("a limit of {} locked memory", bytes_text(rank.locked_memory)),
                          fmt::format("{} where RDMA is used", bytes_text(shared_of_a_gpu_rank)), where,
                          "ulimit -l unlimited"});
    }
    if (i == 0 || rank.host != ranks[i - 1].host) {
      if (rank.cores < beside) {
        findings.push_back({Standing::note, fmt::format("{:.3g} cores for {} ranks", rank.cores, beside),
                            fmt::format("{}, one for each", beside), where,
                            "fewer ranks on this node, or more cores: ranks will wait for each other"});
      }
    }
  }
}

void judge_clocks(const Ranks& ranks, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t apart = std::abs(ranks[i].clock_offset) - ranks[i].clock_error;
    if (apart <= clock_tolerance) continue;
    findings.push_back(
        {Standing::note,
         fmt::format("a clock {:.3f} s {} that of rank 0", static_cast<double>(std::abs(ranks[i].clock_offset)) / 1e9,
                     ranks[i].clock_offset > 0 ? "ahead of" : "behind"),
         fmt::format("within {} s", clock_tolerance / 1'000'000'000), fmt::format("rank {} on {}", i, ranks[i].host),
         "synchronise the clocks (chrony): no result depends on them, but logs are read by them"});
  }
}

// What must be the same on all ranks.
void judge_agreement(const Ranks& ranks, std::vector<Finding>& findings) {
  struct Item {
    std::string_view what;
    std::string MachineOfRank::*text;
    std::string_view remedy;
  };
  const Item items[] = {
      {"numerics key", &MachineOfRank::numerics,
       "the same LibTorch, device and pins on all nodes: results will differ"},
      {"NCCL version", &MachineOfRank::nccl, "install one NCCL on all nodes"},
      {"driver version", &MachineOfRank::driver, "install one driver on all nodes"},
  };
  for (const Item& item : items) {
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      const std::string& first = ranks[0].*item.text;
      const std::string& here = ranks[i].*item.text;
      if (here == first) continue;
      findings.push_back({Standing::no_go, fmt::format("{} `{}`", item.what, here),
                          fmt::format("`{}`, as on rank 0", first), fmt::format("rank {} on {}", i, ranks[i].host),
                          std::string(item.remedy)});
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].numerics == ranks[i].numerics_again) continue;
    findings.push_back(
        {Standing::no_go,
         fmt::format("two runs of the numerics probe gave `{}` and `{}`", ranks[i].numerics, ranks[i].numerics_again),
         "the same bits twice", fmt::format("rank {} on {}", i, ranks[i].host),
         "do not train here: cores or memory of this node compute wrongly, or the pins are not set"});
  }
}

}  // namespace

std::vector<Finding> judge_machine(const std::vector<MachineOfRank>& ranks, const MachineNeeds& needs) {
  std::vector<Finding> findings;
  judge_limits(ranks, needs, findings);
  judge_clocks(ranks, findings);
  judge_agreement(ranks, findings);
  return findings;
}

CheckResult check_machine(Bench& bench) {
  CheckResult result;
  const int ranks = bench.options.layout.world_size();
  const Result<std::vector<RankAnswer>> answers =
      bench.ask({{"probe", "machine"},
                 {"gpu", bench.options.job.device == Device::cuda},
                 {"native", bench.options.job.numerics == Numerics::native}},
                ranks, deadline);
  if (!answers) {
    const Standing standing = answers.failed_with(Code::aborted) ? Standing::unknown : Standing::no_go;
    result.findings.push_back(
        {standing, answers.error().message, fmt::format("{} processes", ranks), "this machine", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, "this machine", deadline, "look at what the rank was doing");
  if (!result.findings.empty()) return result;
  std::vector<MachineOfRank> machines;
  for (const RankAnswer& answer : *answers) {
    machines.push_back(answer.measured.get<MachineOfRank>());
    result.measured["ranks"].push_back(answer.measured);
  }
  result.findings = judge_machine(machines, {.ranks = ranks, .gpu = bench.options.job.device == Device::cuda});
  const MachineOfRank& first = machines.front();
  result.headline = fmt::format("{:.3g} cores, {} memory free, {} files, {} processes; {}", first.cores,
                                bytes_text(first.memory_available), limit_text(first.files),
                                limit_text(first.processes), first.numerics);
  return result;
}

}  // namespace firedrill::preflight
