// The command line as a function, so that tests call it: arguments in, text out, exit code back.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/verb.h"

namespace firedrill {

const std::vector<Verb>& verbs();

// `arguments` without the program's name. Never throws: what does becomes exit 4.
int run_command_line(const std::vector<std::string>& arguments, Streams streams);

}  // namespace firedrill
