// How a thousand random single faults and a thousand undisturbed runs end, counted by kind. Every finding is printed
// with its plan in words; the program ends with 2 if there is one.
//
//   single_faults_bench [FAULTS] [UNDISTURBED] [SEED] [DIR]      default: 1000 1000 1
//
// With DIR, the plans of the findings are written there, for `firedrill replay`.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/model/numerics.h"
#include "harness/run/single_faults.h"

namespace firedrill {
namespace {

using Counts = std::array<int, single_outcome_count>;

void write(const std::filesystem::path& directory, const Plan& plan) {
  if (directory.empty()) return;
  const char* kind = plan.faults.size() == 1 ? "fault" : "undisturbed";
  std::ofstream(directory / fmt::format("{}-{}.json", kind, plan.seed)) << to_json(plan);
}

// Counts and prints what findings there are.
struct Tally {
  const std::filesystem::path& directory;
  int findings = 0;

  void count(Counts& counts, const Plan& plan, const SingleResult& result);
};

void Tally::count(Counts& counts, const Plan& plan, const SingleResult& result) {
  ++counts[static_cast<std::size_t>(result.outcome)];
  if (!is_finding(result.outcome)) return;
  ++findings;
  fmt::print("finding: {}: {}\n  {} {}, seed {}", to_string(result.outcome), result.why, plan.job.name,
             to_string(plan.layout), plan.seed);
  for (const FaultSpec& fault : plan.faults) fmt::print("; {}", describe(fault));
  fmt::print("\n");
  write(directory, plan);
}

void print(std::string_view name, const Counts& counts) {
  fmt::print("{:20}", name);
  for (int i = 0; i < single_outcome_count; ++i) {
    if (counts[static_cast<std::size_t>(i)] > 0)
      fmt::print(" {} {},", counts[static_cast<std::size_t>(i)], to_string(static_cast<SingleOutcome>(i)));
  }
  fmt::print("\n");
}

Result<int> run(int faults, int undisturbed, std::uint64_t seed, const std::filesystem::path& directory) {
  Session session({.probes = false});
  FD_TRY(SingleFaults single, SingleFaults::make(session));
  std::map<std::string_view, Counts> by_kind;
  Tally tally{.directory = directory};
  for (int i = 0; i < faults; ++i) {
    FD_TRY(const Plan plan, single.draw(seed + static_cast<std::uint64_t>(i)));
    FD_TRY(const SingleResult result, single.run(plan));
    tally.count(by_kind[to_string(plan.faults.front().kind)], plan, result);
  }
  Counts quiet{};
  for (int i = 0; i < undisturbed; ++i) {
    FD_TRY(const Plan plan, single.draw_undisturbed(seed + static_cast<std::uint64_t>(i)));
    FD_TRY(const SingleResult result, single.run(plan));
    tally.count(quiet, plan, result);
  }
  Counts all{};
  for (const auto& [kind, counts] : by_kind) {
    print(kind, counts);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += counts[i];
  }
  print("all kinds", all);
  print("undisturbed", quiet);
  return tally.findings;
}

int number(char** argv, int argc, int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; }

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  const firedrill::Result<int> findings =
      firedrill::run(firedrill::number(argv, argc, 1, 1000), firedrill::number(argv, argc, 2, 1000),
                     static_cast<std::uint64_t>(firedrill::number(argv, argc, 3, 1)), argc > 4 ? argv[4] : "");
  if (!findings) {
    fmt::print(stderr, "{}\n", firedrill::describe(findings.error()));
    return 4;
  }
  return *findings == 0 ? 0 : 2;
}
