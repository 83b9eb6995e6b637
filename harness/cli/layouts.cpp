// firedrill layouts JOB: every layout of a job against its golden, each once without the memo; and pairs of layouts,
// the job killed in the middle of the one and resumed under the other.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/job/placement.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/run_one.h"
#include "harness/cli/verb.h"
#include "harness/mutants/mutants.h"
#include "harness/run/differing_bits.h"
#include "harness/run/layout_drill.h"

namespace firedrill {
namespace {

struct LayoutsArguments {
  std::string job;
  std::string pairs = "changes";
  int ranks_max = 16;
};

Plan plan_for(const Job& job, const Layout& layout, const CommonOptions& common) {
  Plan plan;
  plan.scenario = job.name;
  plan.job = job;
  plan.run_id = run_id_of(job);
  plan.layout = layout;
  plan.seed = common.seed.value_or(1);
  plan.mutant = common.mutant;
  plan.recovery.budget = 0;
  return plan;
}

// Killed in the middle of `saved`, resumed under `resumed`.
Plan plan_for(const Job& job, const Layout& saved, const Layout& resumed, const CommonOptions& common) {
  Plan plan = plan_for(job, saved, common);
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
std::vector<Plan> pair_plans(const Job& job, const std::vector<Layout>& layouts, bool all,
                             const CommonOptions& common) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    for (std::size_t j = 0; j < layouts.size(); ++j) {
      if (i == j) continue;
      const bool next = j == (i + 1) % layouts.size();
      if (all || next || changes_between(layouts[i], layouts[j]) == 1) {
        plans.push_back(plan_for(job, layouts[i], layouts[j], common));
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

struct Ran {
  RunReport report;
  std::int64_t differing_bits = 0;

  bool equal() const { return report.verdict == RunVerdict::pass && !report.first_difference; }
};

// The first `layouts` of them without the memo: that a kernel gives the same bits under each is what is tried.
std::vector<Ran> run_all(const std::vector<Plan>& plans, std::size_t layouts, const CommonOptions& common,
                         const std::filesystem::path& goldens, Streams streams) {
  std::vector<Ran> runs(plans.size());
  Progress progress(streams, plans.size(), common.quiet);
  const auto run_some = [&](std::size_t first, std::size_t count, bool memo) {
    PoolOptions pool{.jobs = common.jobs};
    pool.session = {.golden_directory = goldens, .memo = memo, .probes = false};
    run_pool(count, pool, [&](std::size_t i, Session& session) {
      const Plan& plan = plans[first + i];
      Ran& ran = runs[first + i];
      ran.report = run_one(session, plan, {});
      if (ran.report.first_difference) ran.differing_bits = differing_bits(Case(session.history(), plan));
      progress.done(name_of(plan));
    });
  };
  run_some(0, layouts, false);
  run_some(layouts, plans.size() - layouts, true);
  return runs;
}

void warn(Report& report, const Job& job, const std::vector<Layout>& layouts) {
  report.more["warnings"] = nlohmann::ordered_json::array();
  for (const Layout& layout : layouts) {
    for (const std::string& warning : warnings_of(job, layout)) {
      report.more["warnings"].push_back(fmt::format("{}: {}", to_string(layout), warning));
      report.lines.push_back(fmt::format("warning: {}: {}", to_string(layout), warning));
    }
  }
}

void conclude(Report& report, const std::vector<Plan>& plans, const std::vector<Ran>& runs, std::size_t layouts) {
  std::vector<int> codes;
  std::int64_t bits = 0;
  report.more["differences"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunReport& run = runs[i].report;
    codes.push_back(runs[i].equal() ? 0 : run.first_difference ? 2 : exit_code_of(run));
    bits += runs[i].differing_bits;
    if (i < layouts || !runs[i].equal()) report.lines.push_back(line_of(plans[i], run));
    if (!run.first_difference) continue;
    report.more["differences"].push_back({{"layout", name_of(plans[i])},
                                          {"tensor", run.first_difference->tensor},
                                          {"step", run.first_difference->step},
                                          {"bits", runs[i].differing_bits}});
  }
  const auto wrong = std::ranges::count_if(runs, [](const Ran& ran) { return !ran.equal(); });
  report.lines.push_back(fmt::format("{} layouts and {} pairs, {} of them are not equal to the golden; {} bits differ",
                                     layouts, plans.size() - layouts, wrong, bits));
  report.more["layouts"] = layouts;
  report.more["pairs"] = plans.size() - layouts;
  report.more["differing_bits"] = bits;
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
}

VerbResult work(const LayoutsArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  Loaded<Job> job = load_job(arguments.job, {.set = common.set, .properties = {}, .world = {}});
  result.mistakes = job.mistakes;
  if (!result.mistakes.empty()) return result;
  prepare_job(common.mutant, *job);
  const std::vector<Layout> layouts = drill_layouts(*job, arguments.ranks_max);
  std::vector<Plan> plans;
  for (const Layout& layout : layouts) plans.push_back(plan_for(*job, layout, common));
  if (arguments.pairs != "none") {
    for (Plan& pair : pair_plans(*job, layouts, arguments.pairs == "all", common)) plans.push_back(std::move(pair));
  }
  const std::vector<Ran> runs = run_all(plans, layouts.size(), common, golden_directory_of(arguments.job), streams);
  warn(result.report, *job, layouts);
  conclude(result.report, plans, runs, layouts.size());
  result.report.seed = common.seed.value_or(1);
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
