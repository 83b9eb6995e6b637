// planted_bench [SEEDS] [FIRST_SEED]: plants each cause in so many runs of each world and asks the diagnosis for it,
// and diagnoses twice as many clean runs of each. Prints what was named instead, and ends with 1 if anything was.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/diagnose/planted.h"
#include "harness/mutants/mutants.h"
#include "harness/world/process_rank.h"

namespace firedrill {
namespace {

int run_all(std::uint64_t seeds, std::uint64_t first) {
  Session session({.golden_directory = "golden"});
  int missed = 0;
  for (const WorldKind world : {WorldKind::sim, WorldKind::process}) {
    for (const CauseKind cause : planted::causes) {
      std::uint64_t named = 0;
      for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        const planted::Planted planted = planted::draw(cause, world, seed);
        const Diagnosis diagnosis = planted::run_and_diagnose(session, planted.plan);
        if (planted::names(diagnosis, cause, planted.ranks)) {
          ++named;
          continue;
        }
        fmt::print("  {} at ranks {} (seed {}):\n{}", to_string(cause), fmt::join(planted.ranks, ", "), seed,
                   to_text(diagnosis));
      }
      fmt::print("{:<8} {:<17} named first in {} of {}\n", to_string(world), to_string(cause), named, seeds);
      missed += named == seeds ? 0 : 1;
    }
    std::uint64_t quiet = 0;
    for (std::uint64_t seed = first; seed < first + 2 * seeds; ++seed) {
      const Diagnosis diagnosis = planted::run_and_diagnose(session, planted::clean(world, seed));
      quiet += diagnosis.causes.empty() ? 1 : 0;
      if (!diagnosis.causes.empty()) fmt::print("  clean (seed {}):\n{}", seed, to_text(diagnosis));
    }
    fmt::print("{:<8} clean             nothing stands out in {} of {}\n", to_string(world), quiet, 2 * seeds);
    missed += quiet == 2 * seeds ? 0 : 1;
  }
  return missed == 0 ? 0 : 1;
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
