// firedrill: the program. Pins the numerics before LibTorch does any work, then hands over to the command line.
#include <unistd.h>

#include <iostream>
#include <string_view>

#include "engine/model/numerics.h"
#include "engine/os/zygote.h"
#include "harness/cli/command_line.h"
#include "harness/mutants/mutants.h"
#include "harness/world/process_world.h"

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  // The process world starts this program again, to fork its ranks from.
  if (argc > 1 && std::string_view(argv[1]) == firedrill::zygote_verb) {
    return firedrill::zygote_main(argc, argv,
                                  {firedrill::make_protocol, firedrill::make_publisher, firedrill::make_rules});
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return firedrill::run_command_line(
      arguments, {.out = std::cout, .err = std::cerr, .err_is_terminal = isatty(STDERR_FILENO) == 1});
}
