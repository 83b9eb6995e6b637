// firedrill replay RUN_DIR|PLAN: runs a saved plan again. In the sim world the history must be the saved one; in the
// process world the final state and the faults that fired, with their places.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "harness/cli/given_plan.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/kept_run.h"
#include "harness/cli/progress.h"
#include "harness/cli/run_one.h"
#include "harness/cli/verb.h"
#include "harness/cli/watch.h"
#include "harness/history/lines.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

// A difference from what was saved. A replay that is bad by itself stays so; one that looks good cannot be judged.
void differs(RunReport& run, const std::string& how) {
  if (exit_code_of(run) == 0) {
    run.verdict = RunVerdict::unknown;
    run.reason = how;
  } else {
    run.reason += (run.reason.empty() ? "" : "; ") + how;
  }
}

// Histories are compared by digest: an event more, less or in another place is another digest.
void compare_history(const fs::path& saved_file, const Session& session, RunReport& run,
                     std::vector<std::string>& lines) {
  Tables tables;
  History saved(tables);
  if (const Status read = load_history(saved_file.string(), saved); !read) {
    differs(run, fmt::format("nothing to compare with: {}", describe(read.error())));
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
  differs(run, fmt::format("another history than the saved one, first in line {} of {}: was it made by another build?",
                           line, saved_file.string()));
}

struct Numbers {
  std::string final_digest;
  std::vector<std::string> fired;  // sorted: two ranks of one attempt may fire in either order
};

// Of a report of one run; nullopt if the text is none.
std::optional<Numbers> numbers_in(const std::string& report) {
  const auto json = nlohmann::json::parse(report, nullptr, false);
  if (!json.is_object() || !json.contains("runs") || json["runs"].size() != 1) return std::nullopt;
  const auto& run = json["runs"][0];
  if (!run.contains("final_digest") || !run.contains("faults") || !run["faults"].contains("fired")) return std::nullopt;
  Numbers numbers;
  if (run["final_digest"].is_string()) numbers.final_digest = run["final_digest"].get<std::string>();
  for (const auto& fired : run["faults"]["fired"]) numbers.fired.push_back(fired.dump());
  std::sort(numbers.fired.begin(), numbers.fired.end());
  return numbers;
}

// Real processes interleave as the machine lets them, so their events are not compared one by one.
void compare_numbers(const fs::path& saved_file, RunReport& run, std::vector<std::string>& lines) {
  std::stringstream text;
  text << std::ifstream(saved_file).rdbuf();
  const std::optional<Numbers> saved = numbers_in(text.str());
  if (!saved) {
    differs(run, fmt::format("nothing to compare with: {} is not the report of one run", saved_file.string()));
    return;
  }
  Report report;
  report.runs = {run};
  const std::optional<Numbers> now = numbers_in(to_json(report));
  if (saved->final_digest != now->final_digest) {
    differs(run,
            fmt::format("another final state than the saved one: {}, not {}", now->final_digest, saved->final_digest));
  }
  if (saved->fired != now->fired) {
    differs(run, fmt::format("other faults fired, or elsewhere, than in {}: {} then, {} now", saved_file.string(),
                             saved->fired.size(), now->fired.size()));
  }
  lines.push_back(
      fmt::format("compared with {}: the final digest, and the faults that fired with their places ({}); "
                  "not the interleaving, which real processes do not repeat",
                  saved_file.string(), now->fired.size()));
}

struct ReplayArguments {
  std::string given;
  bool watch = false;
};

VerbResult work(const ReplayArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  const std::string& given = arguments.given;
  const fs::path file = plan_file_of(given);
  const bool is_folder = file != given;
  std::optional<Plan> plan = read_given_plan(given, result.mistakes);
  const bool sim = plan && plan->world == WorldKind::sim;
  const fs::path saved = file.parent_path() / (sim ? "history.jsonl" : "report.json");
  if (const Status readable = may_be_read(saved); plan && !readable) {
    result.mistakes.push_back(describe(readable.error()));
  }
  if (!common.set.empty()) result.mistakes.emplace_back("--set does not apply to a plan: its choices are made");
  if (!result.mistakes.empty()) return result;
  if (common.seed) plan->seed = *common.seed;
  if (!common.mutant.empty()) plan->mutant = common.mutant;

  SessionOptions options{.golden_directory = golden_directory_of(plan->scenario_path)};
  Progress progress(streams, 1, common.quiet || arguments.watch);
  options.progress = [&progress](std::string_view what) { progress.doing(what); };
  if (arguments.watch) options.watch = watch_on(streams.err);
  Session session(options);
  RunReport run = run_one(session, *plan, common.out.empty() ? std::nullopt : std::optional(common.out));
  const bool same_choices = !common.seed && common.mutant.empty();
  if (same_choices && run.verdict != RunVerdict::refused) {
    // A plan file may stand alone; a run's folder without what the run gave cannot.
    std::error_code failed;
    if (is_folder || (file.filename() == "plan.json" && fs::exists(saved, failed))) {
      sim ? compare_history(saved, session, run, result.report.lines)
          : compare_numbers(saved, run, result.report.lines);
    }
  }
  run.reproduce =
      fmt::format("firedrill replay {}{}{}", given, common.seed ? fmt::format(" --seed {}", *common.seed) : "",
                  common.mutant.empty() ? "" : " --mutant " + common.mutant);
  progress.done(to_string(run.verdict));
  result.report.environment.numerics_key = session.numerics_key(plan->job);
  result.report.runs.push_back(std::move(run));
  conclude(result.report);
  return result;
}

}  // namespace

Work add_replay(CLI::App& app) {
  auto arguments = std::make_shared<ReplayArguments>();
  app.add_option("plan", arguments->given, "A folder that a run was kept in, or a plan file")->required();
  app.add_flag("--watch", arguments->watch, "As of `run`: tell the events, a line for each, on standard error");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
