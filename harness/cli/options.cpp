#include "harness/cli/options.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "harness/mutants/mutants.h"

namespace firedrill {

void add_common(CLI::App& app, CommonOptions& options) {
  app.add_option("--seed", options.seed, "Seed of the plan's choices and of the scheduler")
      ->check([](const std::string& text) {
        return parse_whole(text) ? std::string()
                                 : fmt::format("--seed is {}: give a whole number from 0 to {}", text, UINT64_MAX);
      })
      ->group("Common");
  app.add_option("--jobs", options.jobs, "Runs at a time")->check(CLI::Range(1, 1024))->group("Common");
  app.add_option("--mutant", options.mutant, "Run with this broken engine part; see `list mutants`")->group("Common");
  app.add_option("--set", options.set, "Change a value of the scenario: path=value, as in job.steps=8")
      ->allow_extra_args(false)
      ->group("Common");
  app.add_option("--filter", options.filter, "Only what matches this glob (path or name)")->group("Common");
  app.add_option("--json", options.json, "Write the report as JSON; - is standard output")->group("Common");
  app.add_option("--junit", options.junit, "Write the report as JUnit XML")->group("Common");
  app.add_option("--out", options.out,
                 "Keep plan, history and report in this new directory, and of the process world the checkpoints")
      ->group("Common");
  app.add_flag("--quiet", options.quiet, "No progress, and a report only of what is not as expected")->group("Common");
}

std::vector<std::string> mistakes_in(const CommonOptions& options) {
  std::vector<std::string> mistakes;
  std::error_code failed;
  if (!options.out.empty() && std::filesystem::exists(options.out, failed)) {
    mistakes.push_back(
        fmt::format("--out {}: it exists already; give a directory that does not", options.out.string()));
  }
  if (!options.mutant.empty() && find_mutant(options.mutant) == nullptr) {
    std::vector<std::string> names;
    for (const Mutant& mutant : mutants()) names.emplace_back(mutant.name);
    const auto near = nearest(options.mutant, names);
    mistakes.push_back(
        fmt::format("--mutant {}: there is no such mutant; {}", options.mutant,
                    near ? fmt::format("did you mean {}?", *near) : fmt::format("there are {}", join(names, ", "))));
  }
  return mistakes;
}

}  // namespace firedrill
