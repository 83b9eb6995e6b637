// firedrill replay RUN_DIR|PLAN: runs a saved plan again. In the sim world the history must be the saved one.
#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "harness/cli/golden_place.h"
#include "harness/cli/progress.h"
#include "harness/cli/run_one.h"
#include "harness/cli/verb.h"
#include "harness/history/lines.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

// Histories are compared by digest: an event more, less or in another place is another digest.
void compare(const fs::path& saved_file, const Session& session, RunReport& run, std::vector<std::string>& lines) {
  Tables tables;
  History saved(tables);
  if (const Status read = load_history(saved_file.string(), saved); !read) {
    run.verdict = RunVerdict::unknown;
    run.reason = describe(read.error());
    return;
  }
  const History& now = session.history();
  if (saved.digest() == now.digest()) {
    lines.push_back(fmt::format("same history: {} events, digest {}", now.size(), now.digest().hex()));
    return;
  }
  std::size_t first = 0;
  const std::string before = to_lines(saved);
  const std::string after = to_lines(now);
  while (first < before.size() && first < after.size() && before[first] == after[first]) ++first;
  const auto line = 1 + std::count(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(first), '\n');
  run.verdict = RunVerdict::unknown;
  run.reason = fmt::format("another history than the saved one, first in line {} of {}: was it made by another build?",
                           line, saved_file.string());
}

VerbResult work(const std::string& given, const CommonOptions& common, Streams streams) {
  VerbResult result;
  const bool is_folder = fs::is_directory(given);
  const fs::path file = is_folder ? fs::path(given) / "plan.json" : fs::path(given);
  Result<Plan> plan = read_plan(file);
  if (!plan) {
    result.mistakes.push_back(describe(plan.error()));
    return result;
  }
  if (common.seed) plan->seed = *common.seed;
  if (!common.mutant.empty()) plan->mutant = common.mutant;
  if (!common.set.empty()) result.mistakes.emplace_back("--set does not apply to a plan: its choices are made");
  if (!result.mistakes.empty()) return result;

  SessionOptions options{.golden_directory = golden_directory_of(plan->scenario_path)};
  Progress progress(streams, 1, common.quiet);
  options.progress = [&progress](std::string_view what) { progress.doing(what); };
  Session session(options);
  RunReport run = run_one(session, *plan, common.out.empty() ? std::nullopt : std::optional(common.out));
  const fs::path history = file.parent_path() / "history.jsonl";
  const bool same_choices = !common.seed && common.mutant.empty();
  if (same_choices && plan->world == WorldKind::sim && run.verdict != RunVerdict::refused && fs::exists(history)) {
    compare(history, session, run, result.report.lines);
  }
  run.reproduce =
      fmt::format("firedrill replay {}{}{}", given, common.seed ? fmt::format(" --seed {}", *common.seed) : "",
                  common.mutant.empty() ? "" : " --mutant " + common.mutant);
  progress.done(to_string(run.verdict));
  result.report.environment.numerics_key = session.numerics_key(plan->job.numerics);
  result.report.runs.push_back(std::move(run));
  conclude(result.report);
  return result;
}

}  // namespace

Work add_replay(CLI::App& app) {
  auto given = std::make_shared<std::string>();
  app.add_option("plan", *given, "A folder that a run was kept in, or a plan file")->required();
  return [given](const CommonOptions& common, Streams streams) { return work(*given, common, streams); };
}

}  // namespace firedrill
