// Verb: one word of the command line. Each stands in a file of its own: it adds its arguments to the parser and gives a
// function that does the work and returns the report.
//
// To add a verb: write its file and enter it in verbs() of command_line.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "harness/cli/options.h"
#include "harness/report/report.h"

namespace firedrill {

// Where a verb speaks to.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
};

// A verb's report, or why there is none. Errors of a run itself are in the report.
struct VerbResult {
  Report report;
  std::vector<std::string> mistakes;  // not empty: bad input, and the report says no more
};

using Work = std::function<VerbResult(const CommonOptions&, Streams)>;

struct Verb {
  std::string_view name;
  std::string_view summary;
  Work (*add)(CLI::App& app);
  bool keeps_files = false;        // in --out; else it is refused
  std::string_view unheeded = {};  // common options that mean nothing here, with spaces between: they are refused
};

Work add_run(CLI::App& app);
Work add_golden(CLI::App& app);
Work add_layouts(CLI::App& app);
Work add_replay(CLI::App& app);
Work add_mutants(CLI::App& app);
Work add_shrink(CLI::App& app);
Work add_sweep(CLI::App& app);
Work add_audit(CLI::App& app);
Work add_crashcheck(CLI::App& app);
Work add_explore(CLI::App& app);
Work add_fit(CLI::App& app);
Work add_preflight(CLI::App& app);
Work add_diagnose(CLI::App& app);
Work add_report(CLI::App& app);
Work add_list(CLI::App& app);

}  // namespace firedrill
