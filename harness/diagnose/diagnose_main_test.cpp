// The main of this folder's tests: the same program also is the zygote of the process world.
#include <gtest/gtest.h>

#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/mutants/mutants.h"
#include "harness/world/process_rank.h"

namespace {

int rank_main(firedrill::RankStart start) {
  return firedrill::run_process_rank(std::move(start),
                                     {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
}

}  // namespace

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::run_zygote([] {}, rank_main);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
