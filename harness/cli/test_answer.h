// For the tests of this folder: a command line as it answers in this process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace firedrill {

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

inline Answer firedrill(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_command_line(arguments, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

}  // namespace firedrill
