// firedrill-nccl-rings: prints what interposed processes left behind, and what became of a plan's faults.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "faults/interposer/ring_reader.h"

namespace firedrill::interposer {
namespace {

constexpr const char* usage =
    "usage: firedrill-nccl-rings [--last N] [--plan PLAN] FOLDER|FILE...\n"
    "  --last N     print the N newest entries of each ring (default 20)\n"
    "  --plan PLAN  also say of each of its faults whether it fired; exit 4 if one did not that had to\n"
    "exit: 0, 1 for bad usage or a file that is no ring, 4\n";

struct Options {
  std::size_t last = 20;
  std::string plan;
  std::vector<std::string> paths;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--last" && i + 1 < argc) {
      const auto number = parse_whole(argv[++i]);
      if (!number) return false;
      options.last = *number;
    } else if (word == "--plan" && i + 1 < argc) {
      options.plan = argv[++i];
    } else if (word.starts_with("-")) {
      return false;
    } else {
      options.paths.push_back(word);
    }
  }
  return !options.paths.empty();
}

int fail(const Error& error) {
  fmt::print(stderr, "firedrill-nccl-rings: {}\n", describe(error));
  return 1;
}

int report_faults(const NcclPlan& plan, const std::vector<RingDump>& rings) {
  int missing = 0;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const FaultOutcome outcome = outcome_of(plan, i, rings);
    fmt::print("fault {} {}: {}\n", i, describe(plan.faults[i]), outcome.text);
    if (!outcome.fired && !plan.faults[i].may_not_fire) ++missing;
  }
  return missing == 0 ? 0 : 4;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(usage, stderr);
    return 1;
  }
  std::vector<RingDump> rings;
  for (const std::string& path : options.paths) {
    if (std::filesystem::is_directory(path)) {
      auto found = read_rings(path);
      if (!found) return fail(found.error());
      for (RingDump& ring : *found) rings.push_back(std::move(ring));
    } else {
      auto ring = read_ring(path);
      if (!ring) return fail(ring.error());
      rings.push_back(*std::move(ring));
    }
  }
  for (const RingDump& ring : rings) std::fputs(to_text(ring, options.last).c_str(), stdout);
  if (options.plan.empty()) return 0;
  auto plan = read_nccl_plan(options.plan);
  if (!plan) return fail(plan.error());
  return report_faults(*plan, rings);
}

}  // namespace
}  // namespace firedrill::interposer

int main(int argc, char** argv) { return firedrill::interposer::run(argc, argv); }
