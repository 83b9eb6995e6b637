// firedrill layouts JOB: every layout of a job against its golden, each once without the memo; and pairs of layouts,
// the job killed in the middle of the one and resumed under the other.
#include <fmt/format.h>

#include <memory>

#include "engine/job/placement.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/run_one.h"
#include "harness/cli/verb.h"
#include "harness/run/layout_drill.h"

namespace firedrill {
namespace {

struct LayoutsArguments {
  std::string job;
  std::string pairs = "changes";
  int ranks_max = 16;
};

Plan plan_for(const Job& job, const Layout& layout, std::uint64_t seed) {
  Plan plan;
  plan.scenario = job.name;
  plan.job = job;
  plan.run_id = run_id_of(job);
  plan.layout = layout;
  plan.seed = seed;
  plan.recovery.budget = 0;
  return plan;
}

// Killed in the middle of `saved`, resumed under `resumed`.
Plan plan_for(const Job& job, const Layout& saved, const Layout& resumed, std::uint64_t seed) {
  Plan plan = plan_for(job, saved, seed);
  FaultSpec kill;
  kill.at = {.attempt = 1, .rank = 0, .step = job.steps / 2 + 1, .phase = Phase::backward};
  plan.faults = {kill};
  plan.recovery.budget = 1;
  plan.recovery.layout = resumed;
  return plan;
}

int changes_between(const Layout& a, const Layout& b) {
  return (a.dp != b.dp) + (a.tp != b.tp) + (a.pp != b.pp) + (a.cp != b.cp) + (a.ep != b.ep) + (a.zero != b.zero) +
         (a.sequence_parallel != b.sequence_parallel) +
         (a.schedule != b.schedule || a.virtual_stages != b.virtual_stages) + (a.recompute != b.recompute) +
         (a.prefetch != b.prefetch) + (a.bucket_bytes != b.bucket_bytes);
}

// `all` ordered pairs; or each change of one dimension, and each layout saved and loaded at least once.
std::vector<Plan> pair_plans(const Job& job, const std::vector<Layout>& layouts, bool all, std::uint64_t seed) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    for (std::size_t j = 0; j < layouts.size(); ++j) {
      if (i == j) continue;
      const bool next = j == (i + 1) % layouts.size();
      if (all || next || changes_between(layouts[i], layouts[j]) == 1) {
        plans.push_back(plan_for(job, layouts[i], layouts[j], seed));
      }
    }
  }
  return plans;
}

// Two plans' runs are the same thing to a reader: a name, a verdict, and where it first differs.
std::string name_of(const Plan& plan) {
  if (!plan.recovery.layout) return to_string(plan.layout);
  return fmt::format("{} -> {}", to_string(plan.layout), to_string(*plan.recovery.layout));
}

std::string line_of(const Plan& plan, const RunReport& run) {
  std::string result = "equal";
  if (run.verdict != RunVerdict::pass) result = fmt::format("{}: {}", to_string(run.verdict), run.reason);
  if (run.first_difference) {
    result = fmt::format("DIFFERS in {} after step {}", run.first_difference->tensor, run.first_difference->step);
  }
  return fmt::format("{:<56} {:>3} ranks  {}", name_of(plan), plan.layout.world_size(), result);
}

VerbResult work(const LayoutsArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  Loaded<Job> job = load_job(arguments.job, {.set = common.set, .properties = {}, .world = {}});
  result.mistakes = job.mistakes;
  if (!common.mutant.empty()) result.mistakes.emplace_back("--mutant: layouts compares the engine with itself");
  if (!result.mistakes.empty()) return result;
  const std::uint64_t seed = common.seed.value_or(1);
  const std::vector<Layout> layouts = drill_layouts(*job, arguments.ranks_max);
  std::vector<Plan> plans;
  for (const Layout& layout : layouts) plans.push_back(plan_for(*job, layout, seed));
  if (arguments.pairs != "none") {
    for (Plan& pair : pair_plans(*job, layouts, arguments.pairs == "all", seed)) plans.push_back(std::move(pair));
  }

  std::vector<RunReport> runs(plans.size());
  {
    Progress progress(streams, plans.size(), common.quiet);
    const auto run_some = [&](std::size_t first, std::size_t count, bool memo) {
      PoolOptions pool{.jobs = common.jobs};
      pool.session = {.golden_directory = golden_directory_of(arguments.job), .memo = memo, .probes = false};
      run_pool(count, pool, [&](std::size_t i, Session& session) {
        runs[first + i] = run_one(session, plans[first + i], {});
        progress.done(name_of(plans[first + i]));
      });
    };
    run_some(0, layouts.size(), false);
    run_some(layouts.size(), plans.size() - layouts.size(), true);
  }
  Report& report = result.report;
  std::vector<int> codes;
  int differing = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool equal = runs[i].verdict == RunVerdict::pass && !runs[i].first_difference;
    if (!equal) ++differing;
    codes.push_back(equal ? 0 : runs[i].first_difference ? 2 : exit_code_of(runs[i]));
    if (i < layouts.size() || !equal) report.lines.push_back(line_of(plans[i], runs[i]));
  }
  report.more["warnings"] = nlohmann::ordered_json::array();
  for (const Layout& layout : layouts) {
    for (const std::string& warning : warnings_of(*job, layout)) {
      report.more["warnings"].push_back(fmt::format("{}: {}", to_string(layout), warning));
      report.lines.push_back(fmt::format("warning: {}: {}", to_string(layout), warning));
    }
  }
  report.lines.push_back(fmt::format("{} layouts and {} pairs, {} of them differ from the golden", layouts.size(),
                                     plans.size() - layouts.size(), differing));
  report.more["layouts"] = layouts.size();
  report.more["pairs"] = plans.size() - layouts.size();
  report.more["differing_bits"] = differing;
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  return result;
}

}  // namespace

Work add_layouts(CLI::App& app) {
  auto arguments = std::make_shared<LayoutsArguments>();
  app.add_option("job", arguments->job, "Job file")->required();
  app.add_option("--pairs", arguments->pairs,
                 "Save under one layout, resume under another: none, changes (of one dimension each, and every layout "
                 "saved and loaded once), or all")
      ->check(CLI::IsMember({"none", "changes", "all"}));
  app.add_option("--ranks", arguments->ranks_max, "The most ranks of a layout")->check(CLI::Range(1, 1024));
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
