#include "harness/preflight/drills.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <numeric>

#include "engine/base/text.h"
#include "harness/run/run.h"

namespace firedrill::preflight {
namespace {

constexpr int drill_steps = 6;
constexpr int drill_every = 2;
constexpr int restarts = 3;

Where place(int rank, std::int64_t step, Phase phase) { return {.rank = rank, .step = step, .phase = phase}; }

Where file_place(int rank, std::int64_t step, FileOp op) {
  return {.rank = rank, .step = step, .phase = Phase::save, .op = SeamOp::file, .file_op = op};
}

std::vector<FaultSpec> lose_node(const Job& job, const Layout& layout) {
  std::vector<FaultSpec> faults;
  const int last = layout.world_size() - 1;
  for (int rank = 0; rank <= last; ++rank) {
    if (node_of(job, rank) != node_of(job, last)) continue;
    // All die at the same place; one that hears of another's death first never gets there.
    faults.push_back({.kind = FaultKind::kill, .at = place(rank, 3, Phase::forward), .may_not_fire = !faults.empty()});
  }
  return faults;
}

// A folder that nothing has been in before, so that a drill finds nothing of another.
Result<std::filesystem::path> fresh_folder(const std::filesystem::path& directory) {
  std::string pattern = (directory / "firedrill-drills-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) return std::filesystem::path(pattern);
  return Error{.code = Code::io_error,
               .message = fmt::format("cannot make {}: {}", pattern, strerrordesc_np(errno)),
               .hint = "look whether the directory is there and may be written"};
}

Result<RunReport> run_in(Session& session, const Plan& plan, const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::create_directory(directory, error)) {
    return Error{.code = error ? Code::io_error : Code::already_exists,
                 .message = fmt::format("cannot make {}: {}", directory.string(),
                                        error ? error.message() : "it is there already")};
  }
  return session.run(plan, {.directory = directory});
}

Finding cannot_be_run(const std::string& where, const Error& error) {
  return {Standing::unknown, error.message, "a drill that can be run", where,
          error.hint.empty() ? "look at the error" : error.hint};
}

struct DrillSums {
  std::size_t drills = 0;
  std::size_t equal = 0;
  std::size_t attempts = 0;
  std::size_t fired = 0;

  void add(const RunReport& report) {
    ++drills;
    equal += report.final_digest == report.golden_digest && !report.final_digest.empty() ? 1 : 0;
    attempts += report.attempts.size();
    fired += report.fired.size();
  }
};

Json numbers_of(const Drill& drill, const RunReport& report) {
  return {{"name", drill.name},
          {"verdict", to_string(report.verdict)},
          {"fired", report.fired.size()},
          {"attempts", report.attempts.size()},
          {"final_digest", report.final_digest},
          {"golden_digest", report.golden_digest},
          {"duration", report.seconds}};
}

std::string evidence_of(const RunReport& report) {
  if (!report.reason.empty()) return report.reason;
  return fmt::format("verdict {}", to_string(report.verdict));
}

}  // namespace

Job shrunken(const Job& job, const Layout& layout) {
  Job small = job;
  small.steps = drill_steps;
  small.checkpoint.every = drill_every;
  small.batch.accumulation = std::min(job.batch.accumulation, 2);
  small.batch.lane_micro_batch = std::min(job.batch.lane_micro_batch, 2);
  const Job few_steps = small;
  ModelSpec& model = small.model;
  model.layers = std::min(model.layers, layout.pp * layout.virtual_stages);
  model.heads = std::min(model.heads, std::lcm(job.lanes.tp, 2));
  if (model.kv_heads > 0) model.kv_heads = std::min(model.kv_heads, job.lanes.tp);
  model.width = std::min(model.width, 8 * model.heads);
  model.hidden = std::min(model.hidden_size(), 8 * model.heads);
  model.sequence = std::min(model.sequence, 8 * job.lanes.cp * job.lanes.tp);
  if (model.experts > 0) model.experts = std::min(model.experts, std::max(2 * layout.ep, model.top_k));
  const bool legal = mistakes_in(small).empty() && mistakes_in(layout, small).empty();
  return legal ? small : few_steps;
}

std::vector<Drill> drills_of(const Job& job, const Layout& layout) {
  const int last = layout.world_size() - 1;
  return {
      {"lose-a-rank", {{.kind = FaultKind::kill, .at = place(last, 3, Phase::backward)}}},
      {"lose-a-node", lose_node(job, layout)},
      {"storage-error", {{.kind = FaultKind::io_error, .at = file_place(last, 4, FileOp::write)}}},
      {"no-space", {{.kind = FaultKind::no_space, .at = file_place(0, 4, FileOp::create)}}},
      {"preemption", {{.kind = FaultKind::preempt, .at = place(last, 3, Phase::forward)}}},
  };
}

std::vector<Drill> phase_drills() {
  std::vector<Drill> drills;
  const auto add = [&drills](Phase phase, std::int64_t step) {
    drills.push_back({fmt::format("lose-a-rank-in-{}", to_string(phase)),
                      {{.kind = FaultKind::kill, .at = place(0, step, phase)}},
                      false});
  };
  for (const Phase phase : {Phase::input, Phase::forward, Phase::backward, Phase::exchange, Phase::optimizer})
    add(phase, 3);
  for (const Phase phase : {Phase::save, Phase::commit, Phase::validate}) add(phase, 4);
  add(Phase::retire, 6);
  for (const Phase phase : {Phase::rendezvous, Phase::find, Phase::restore}) {
    FaultSpec again{.kind = FaultKind::kill, .at = {.attempt = 2, .rank = 0, .phase = phase}};
    drills.push_back({fmt::format("lose-a-rank-in-{}", to_string(phase)),
                      {{.kind = FaultKind::kill, .at = place(0, 5, Phase::forward)}, again},
                      false});
  }
  return drills;
}

Plan plan_of(const Drill& drill, const Job& job, const Layout& layout) {
  Plan plan;
  plan.scenario = "preflight-" + drill.name;
  plan.job = shrunken(job, layout);
  plan.run_id = run_id_of(plan.job);
  plan.layout = layout;
  plan.world = WorldKind::process;
  plan.faults = drill.faults;
  for (FaultSpec& fault : plan.faults) fault.may_not_fire = fault.may_not_fire || !drill.must_fire;
  plan.recovery.budget = restarts;
  return plan;
}

std::vector<Finding> judge_drill(const Drill& drill, const RunReport& report) {
  const std::string where = fmt::format("drill {}, layout {}", drill.name, report.layout);
  const std::string needed = "a run that comes back and ends with the golden's digest";
  const std::string kept = report.directory.empty()
                               ? std::string()
                               : fmt::format("; plan, history and checkpoints are in {}", report.directory);
  if (report.verdict == RunVerdict::unknown || report.verdict == RunVerdict::refused) {
    return {{Standing::unknown, evidence_of(report), needed, where, "firedrill report DIR says more" + kept}};
  }
  if (report.verdict != RunVerdict::pass || report.final_digest != report.golden_digest) {
    std::string measured = evidence_of(report);
    if (report.first_difference) {
      measured += fmt::format("; first difference: {} at step {}", report.first_difference->tensor,
                              report.first_difference->step);
    }
    return {{Standing::no_go, measured, needed, where, "do not start a long run before this is understood" + kept}};
  }
  if (report.fired.empty()) {
    return {{Standing::note, "the job never gets to the place of the fault", "a fault that fires", where, ""}};
  }
  return {{Standing::go,
           fmt::format("{} fault(s), {} attempts, digest {}", report.fired.size(), report.attempts.size(),
                       report.final_digest),
           needed, where, ""}};
}

CheckResult run_drills(Bench& bench, const std::vector<Drill>& drills) {
  CheckResult result;
  const Options& options = bench.options;
  if (!bench.storage_answers) {
    result.findings.push_back({Standing::unknown, "not tried, as the storage did not pass its check",
                               "storage that does", options.directory.string(), "mend the storage first"});
    return result;
  }
  const Result<std::filesystem::path> root = fresh_folder(options.directory);
  if (!root) {
    result.findings.push_back(cannot_be_run("the drills", root.error()));
    return result;
  }
  Session session({});
  DrillSums sums;
  result.measured["drills"] = Json::array();
  for (const Drill& drill : drills) {
    bench.tell(fmt::format("drill {}", drill.name));
    const std::filesystem::path directory = *root / drill.name;
    std::error_code error;
    const Result<RunReport> report = run_in(session, plan_of(drill, options.job, options.layout), directory);
    const bool stopped = bench.stopped();  // then the drill may have been ended in its middle, and says nothing
    if (stopped || !report) std::filesystem::remove_all(directory, error);
    if (stopped) break;
    if (!report) {
      result.findings.push_back(cannot_be_run(fmt::format("drill {}", drill.name), report.error()));
      continue;
    }
    const std::vector<Finding> findings = judge_drill(drill, *report);
    result.findings.insert(result.findings.end(), findings.begin(), findings.end());
    sums.add(*report);
    result.measured["drills"].push_back(numbers_of(drill, *report));
    if (findings.front().standing < Standing::unknown) std::filesystem::remove_all(directory, error);
  }
  std::error_code kept;
  std::filesystem::remove(*root, kept);  // only if nothing in it was kept
  if (bench.stopped()) {
    result.findings.push_back({Standing::unknown,
                               fmt::format("it was interrupted after {} of {} drills", sums.drills, drills.size()),
                               "all drills", options.directory.string(), "run it again"});
  }
  result.headline = fmt::format("{} of {} equal to the golden; {} faults fired, {} attempts of {} real processes",
                                sums.equal, drills.size(), sums.fired, sums.attempts, options.layout.world_size());
  return result;
}

CheckResult check_drills(Bench& bench) { return run_drills(bench, drills_of(bench.options.job, bench.options.layout)); }

CheckResult check_phases(Bench& bench) { return run_drills(bench, phase_drills()); }

}  // namespace firedrill::preflight
