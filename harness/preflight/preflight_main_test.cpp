// The main of this folder's tests: the same program also is the zygote, of checks and of the process world. Which
// trouble a check's ranks are to meet stands in the environment, so that the zygote hands it down.
#include <gtest/gtest.h>

#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/mutants/mutants.h"
#include "harness/preflight/troubles_test.h"
#include "harness/world/process_rank.h"

namespace {

int rank_main(firedrill::RankStart start) {
  if (firedrill::preflight::is_probe(start)) {
    return firedrill::preflight::run_probe_rank(std::move(start), firedrill::preflight::troubled_seams());
  }
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
