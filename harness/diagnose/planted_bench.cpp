// planted_bench [SEEDS] [FIRST_SEED]: plants each cause in so many runs of each world and asks the diagnosis for it,
// and diagnoses twice as many clean runs of each. Prints what was named instead and a table of both worlds, and ends
// with 1 if anything was.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/diagnose/planted.h"
#include "harness/mutants/mutants.h"
#include "harness/world/process_rank.h"

namespace firedrill {
namespace {

constexpr std::array worlds = {WorldKind::sim, WorldKind::process};

struct Count {
  std::uint64_t right = 0;
  std::uint64_t runs = 0;
  std::string text() const { return fmt::format("{} of {}", right, runs); }
};

class Bench {
 public:
  // No cause: a clean run.
  void run(WorldKind world, std::optional<CauseKind> cause, std::uint64_t seed) {
    const planted::Planted planted =
        cause ? planted::draw(*cause, world, seed) : planted::Planted{planted::clean(world, seed), {}};
    const auto began = std::chrono::steady_clock::now();
    const Diagnosis diagnosis = planted::run_and_diagnose(session_, planted.plan);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const bool right = cause ? planted::names(diagnosis, *cause, planted.ranks) : diagnosis.causes.empty();
    Count& count = counts_[{world, cause}];
    ++count.runs;
    if (right) {
      ++count.right;
      return;
    }
    all_right_ = false;
    fmt::print("  {}, {} at ranks {} (seed {}):\n{}", to_string(world), name_of(cause), fmt::join(planted.ranks, ", "),
               seed, to_text(diagnosis));
  }

  void print_row(std::optional<CauseKind> cause) {
    std::string row = fmt::format("{:<18}", name_of(cause));
    for (const WorldKind world : worlds) row += fmt::format("{:>10}", counts_[{world, cause}].text());
    fmt::print("{}\n", row);
  }
  bool all_right() const { return all_right_; }
  double seconds() const { return seconds_; }

 private:
  static std::string_view name_of(std::optional<CauseKind> cause) { return cause ? to_string(*cause) : "clean"; }

  Session session_{{.golden_directory = "golden"}};
  std::map<std::pair<WorldKind, std::optional<CauseKind>>, Count> counts_;
  double seconds_ = 0;
  bool all_right_ = true;
};

int run_all(std::uint64_t seeds, std::uint64_t first) {
  Bench bench;
  for (std::uint64_t seed = first; seed < first + 2 * seeds; ++seed) {
    for (const WorldKind world : worlds) {
      if (seed < first + seeds) {
        for (const CauseKind cause : planted::causes) bench.run(world, cause, seed);
      }
      bench.run(world, std::nullopt, seed);
    }
  }
  fmt::print("{:<18}{:>10}{:>10}\n", "named first", to_string(worlds[0]), to_string(worlds[1]));
  for (const CauseKind cause : planted::causes) bench.print_row(cause);
  bench.print_row(std::nullopt);
  fmt::print("{:.0f} s in runs\n", bench.seconds());
  return bench.all_right() ? 0 : 1;
}

int rank_main(RankStart start) {
  return run_process_rank(std::move(start), {make_protocol, make_publisher, make_rules});
}

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::run_zygote([] {}, firedrill::rank_main);
  }
  const auto given = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  return firedrill::run_all(given(1, 5), given(2, 1));
}
