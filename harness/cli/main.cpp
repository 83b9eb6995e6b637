// firedrill: the program. Pins the numerics before LibTorch does any work, then hands over to the command line.
#include <unistd.h>

#include <iostream>
#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/cli/command_line.h"
#include "harness/mutants/mutants.h"
#include "harness/preflight/rank.h"
#include "harness/world/process_rank.h"

namespace {

// A rank of a run, or of a check before one.
int rank_main(firedrill::RankStart start) {
  if (firedrill::preflight::is_probe(start)) return firedrill::preflight::run_probe_rank(std::move(start));
  return firedrill::run_process_rank(std::move(start),
                                     {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
}

}  // namespace

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  // The process world starts this program again, to fork its ranks from.
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::run_zygote([] {}, rank_main);
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return firedrill::run_command_line(
      arguments, {.out = std::cout, .err = std::cerr, .err_is_terminal = isatty(STDERR_FILENO) == 1});
}
