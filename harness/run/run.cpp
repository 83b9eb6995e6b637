#include "harness/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "engine/job/placement.h"
#include "engine/job/without_checks.h"
#include "engine/train/device/job_compute.h"
#include "harness/check/attribution.h"
#include "harness/golden/record.h"
#include "harness/history/lines.h"
#include "harness/mutants/mutants.h"
#include "harness/run/golden_cache.h"
#include "harness/run/timeline.h"
#include "harness/world/process_world.h"
#include "harness/world/rank_collectives.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

// A job ready to run: what is made once for all its runs.
struct Prepared {
  Job job;
  Corpus corpus;
  Value text;
  Model model;
  Sampler sampler;
  SampleDigests digests;
  std::optional<Golden> golden = {};
  std::string golden_note = {};
};

// What belongs to one job in one layout with one engine (right or broken).
struct Bench {
  Job job;
  RunIdentity identity;
  std::unique_ptr<Prober> prober;
};

// Of the runs in the sim world, one in so many checks what the others rely on.
constexpr std::uint64_t digest_check_every = 1'000;
constexpr std::uint64_t without_memo_every = 10'000;

RunVerdict verdict_of(const RunOutcome& outcome, const std::vector<Judged>& judged) {
  if (outcome.check_failed) return RunVerdict::fail;
  const Outcome properties = overall(judged);
  if (properties == Outcome::fail) return RunVerdict::fail;
  if (!outcome.finished) return RunVerdict::liveness;
  return properties == Outcome::unknown ? RunVerdict::unknown : RunVerdict::pass;
}

const Judged* first_bad(const std::vector<Judged>& judged) {
  for (const Outcome bad : {Outcome::fail, Outcome::unknown}) {
    for (const Judged& each : judged) {
      if (each.verdict.outcome == bad) return &each;
    }
  }
  return nullptr;
}

std::string reason_of(RunVerdict verdict, const RunOutcome& outcome, const std::vector<Judged>& judged) {
  if (verdict == RunVerdict::pass) return {};
  if (outcome.check_failed) return fmt::format("a check in the engine failed: {}", outcome.why);
  if (verdict == RunVerdict::liveness) return outcome.why;
  const Judged* bad = first_bad(judged);
  return bad == nullptr ? outcome.why : fmt::format("{}: {}", bad->property->name, bad->verdict.evidence);
}

Status has_one_golden(const Job& job) {
  if (job.collectives != Reduction::native) return {};
  return Error{
      .code = Code::invalid_input,
      .message = "collectives is native: NCCL's sums have other bits in every layout, and the job no one golden",
      .hint = "give collectives: tree; a run in the process world makes the golden of its layout itself"};
}

}  // namespace

struct Session::Impl {
  explicit Impl(SessionOptions given) : options(std::move(given)) {
    resources.memo = sim::MemoTable({.bytes_max = options.memo_bytes});
  }

  Result<Prepared*> prepare(const Job& job);
  Result<Prepared*> prepare(const Plan& plan);
  Result<const Golden*> golden_of(Prepared& prepared);
  // The same for a run of this plan: with the runs of tensors that its ranks hold.
  Result<const Golden*> golden_of(Prepared& prepared, const Plan& plan);
  Result<Golden> record_in_layout(const Plan& plan, Prepared& prepared);
  Bench& bench_of(const Plan& plan, Prepared& prepared);
  Subject subject_of(const Plan& plan, Prepared& prepared);
  Result<RunOutcome> play(const Plan& plan, Prepared& prepared, const std::filesystem::path& directory,
                          const std::function<void()>& after_attempt = {});
  const std::string& numerics(const Job& job);
  void tell(std::string_view what) const {
    if (options.progress) options.progress(what);
  }

  SessionOptions options;
  Tables tables;
  History history{tables};
  SimResources resources;
  Auditor auditor;
  std::map<std::string, std::unique_ptr<Prepared>> prepared;  // by job digest and corpus path
  std::map<std::string, Bench> benches;                       // by the above, catalog, layout and mutant
  std::map<std::tuple<Numerics, Device, Reduction>, std::string> numerics_keys;
  std::map<std::string, Golden> layout_goldens;  // by job digest, corpus path and layout
  std::uint64_t sim_runs = 0;
};

const std::string& Session::Impl::numerics(const Job& job) {
  std::string& key = numerics_keys[{job.numerics, job.device, job.collectives}];
  if (key.empty()) key = numerics_key_of(job);
  return key;
}

Result<Prepared*> Session::Impl::prepare(const Job& job) {
  if (std::string trouble = device_trouble(job); !trouble.empty()) {
    return Error{.code = Code::invalid_input, .message = std::move(trouble)};
  }
  const std::string key = fmt::format("{}{}{}{}", digest_of_job(job).hex(), static_cast<int>(job.device),
                                      static_cast<int>(job.collectives), job.data.corpus);
  auto& slot = prepared[key];
  if (!slot) {
    FD_TRY(Corpus corpus, load_corpus(job.data.corpus));
    CorpusSplit split = split_corpus(corpus, job.data.held_out);
    FD_TRY(Sampler sampler, Sampler::make(job, split.training.count()));
    SampleDigests digests(split.training, job.model.sequence);
    slot = std::make_unique<Prepared>(Prepared{.job = job,
                                               .corpus = std::move(corpus),
                                               .text = std::move(split.training),
                                               .model = Model(job),
                                               .sampler = std::move(sampler),
                                               .digests = std::move(digests)});
  }
  return slot.get();
}

Result<Prepared*> Session::Impl::prepare(const Plan& plan) {
  FD_TRY(Prepared* const ready, prepare(plan.job));
  FD_TRY_VOID(sums_are_offered(plan, gpus_for(plan.job)));
  return ready;
}

Result<const Golden*> Session::Impl::golden_of(Prepared& job) {
  FD_TRY_VOID(has_one_golden(job.job));
  if (job.golden) return &*job.golden;
  const GoldenKey key{.job = digest_of_job(job.job), .corpus = job.corpus.digest, .numerics = numerics(job.job)};
  if (!options.golden_directory.empty()) {
    const auto file = options.golden_directory / golden_file_name(job.job.name, key);
    Result<Golden> recorded = read_golden(file);
    if (!recorded && !recorded.failed_with(Code::not_found)) return std::move(recorded).error();
    if (recorded && recorded->key == key) {
      job.golden = std::move(*recorded);
      job.golden_note = fmt::format("recorded in {}", std::filesystem::proximate(file).string());
      return &*job.golden;
    }
  }
  tell(fmt::format("looking for the golden of {}: no recorded one has its key", job.job.name));
  FD_TRY(job.golden, kept_or_recorded(options.golden_cache, job.job, job.model, job.corpus, key, job.golden_note));
  return &*job.golden;
}

Result<const Golden*> Session::Impl::golden_of(Prepared& job, const Plan& plan) {
  if (plan.job.collectives == Reduction::native) {
    const std::string key = digest_of_job(plan.job).hex() + plan.job.data.corpus + "|" + to_string(plan.layout);
    auto slot = layout_goldens.find(key);
    if (slot == layout_goldens.end()) {
      FD_TRY(Golden made, record_in_layout(plan, job));
      slot = layout_goldens.emplace(key, std::move(made)).first;
    }
    job.golden_note = "computed now: NCCL's sums have other bits in every layout";
    return &slot->second;
  }
  FD_TRY(const Golden* const golden, golden_of(job));
  const bool sharded = plan.layout.zero > 0 || (plan.recovery.layout && plan.recovery.layout->zero > 0);
  if (!sharded || job.job.lanes.dp == 1 || !golden->runs.empty()) return golden;
  FD_TRY_VOID(record_runs(*job.golden, job.job, job.model, job.corpus));
  return golden;
}

Result<Golden> Session::Impl::record_in_layout(const Plan& plan, Prepared& job) {
  Plan calm = plan;
  calm.faults.clear();
  calm.mutant.clear();
  calm.recovery = {.budget = 0};
  calm.job.checkpoint.every = 0;
  calm.job.checkpoint.mode = PublishMode::sync;
  FD_TRY(const RunOutcome outcome, play(calm, job, {}));
  if (!outcome.finished) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("the undisturbed run of {} in layout {} did not finish: {}", plan.job.name,
                                        to_string(plan.layout), outcome.why)};
  }
  const GoldenKey key{.job = digest_of_job(plan.job),
                      .corpus = job.corpus.digest,
                      .numerics = fmt::format("{} {}", numerics(plan.job), to_string(plan.layout))};
  FD_TRY(Golden golden, golden_from(history, plan.job, key));
  // Ranks draw side by side: what one lane draws is in order, the lanes among each other are not.
  for (GoldenStep& step : golden.steps) std::ranges::stable_sort(step.samples, {}, &GoldenSample::lane);
  return golden;
}

Bench& Session::Impl::bench_of(const Plan& plan, Prepared& job) {
  // The catalog is no part of a job's digest, and yet decides where a probe looks.
  const std::string key = fmt::format("{}{}|{}|{}|{}|{}", digest_of_job(plan.job).hex(), plan.job.data.corpus,
                                      static_cast<int>(plan.job.checkpoint.catalog),
                                      to_string(without_checks(plan.layout)), plan.run_id, plan.mutant);
  auto [slot, fresh] = benches.try_emplace(key);
  Bench& bench = slot->second;
  if (fresh) {
    bench.job = plan.job;
    bench.identity = make_run_identity(bench.job, plan.layout, plan.run_id, job.corpus.digest, numerics(job.job));
    bench.prober = std::make_unique<Prober>(make_protocol(plan.mutant), bench.job, bench.identity, tables, &auditor);
  }
  return bench;
}

Subject Session::Impl::subject_of(const Plan& plan, Prepared& job) {
  return {.plan = plan,
          .model = job.model,
          .sampler = job.sampler,
          .text = job.text,
          .identity = bench_of(plan, job).identity,
          .protocol = [&plan] { return make_protocol(plan.mutant); },
          .publisher = [&plan] { return make_publisher(plan.mutant); },
          .rules = [&plan] { return make_rules(plan.mutant); },
          .liveness = [&plan] { return make_liveness(plan.mutant); },
          .digests = &job.digests};
}

Result<RunOutcome> Session::Impl::play(const Plan& plan, Prepared& job, const std::filesystem::path& directory,
                                       const std::function<void()>& after_attempt) {
  Bench& bench = bench_of(plan, job);
  const Subject subject = subject_of(plan, job);
  history.reset();
  if (plan.world == WorldKind::sim) {
    const ConfinedValues of_this_thread;
    ++sim_runs;
    SimWorld world(resources, subject, *bench.prober, history,
                   {.memo = options.memo && sim_runs % without_memo_every != 0,
                    .probes = options.probes,
                    .digest_check = sim_runs % digest_check_every == 0});
    return supervise(plan, world, world.observer(), history, after_attempt);
  }
  FD_TRY(const std::unique_ptr<ProcessWorld> world,
         ProcessWorld::start(subject, *bench.prober, history, {.directory = directory}));
  return supervise(plan, *world, world->observer(), history, after_attempt);
}

Session::Session(SessionOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Session::~Session() = default;

const History& Session::history() const { return impl_->history; }
const std::string& Session::numerics_key(const Job& job) { return impl_->numerics(job); }

Result<const Golden*> Session::golden(const Job& job, std::string* note) {
  FD_TRY(Prepared* const prepared, impl_->prepare(job));
  FD_TRY(const Golden* const golden, impl_->golden_of(*prepared));
  if (note != nullptr) *note = prepared->golden_note;
  return golden;
}

Result<Golden> Session::record_in_layout(const Plan& plan) {
  FD_TRY(Prepared* const prepared, impl_->prepare(plan));
  return impl_->record_in_layout(plan, *prepared);
}

Result<Golden> Session::record(const Job& job) {
  FD_TRY_VOID(has_one_golden(job));
  FD_TRY(Prepared* const prepared, impl_->prepare(job));
  return record_golden(job, prepared->model, prepared->corpus, numerics_key(job));
}

Result<Trial> Session::trial(const Plan& plan, bool with_digest) {
  FD_TRY(Prepared* const prepared, impl_->prepare(plan));
  FD_TRY(const Golden* const golden, impl_->golden_of(*prepared, plan));
  FD_TRY(const RunOutcome outcome, impl_->play(plan, *prepared, {}));
  append_golden(*golden, impl_->history);
  const std::vector<Judged> judged = judge_all(Case(impl_->history, plan));
  Trial trial{.verdict = verdict_of(outcome, judged), .check_failed = outcome.check_failed};
  if (const Judged* bad = first_bad(judged)) {
    trial.property = bad->property->name;
    trial.evidence = bad->verdict.evidence;
  } else if (trial.verdict != RunVerdict::pass) {
    trial.evidence = outcome.why;
  }
  trial.faults_fired = static_cast<int>(impl_->history.of(EventKind::fault_fired).size());
  if (with_digest) trial.history = impl_->history.digest();
  return trial;
}

Result<Trial> Session::trial_without_memo(const Plan& plan) {
  const bool memo = std::exchange(impl_->options.memo, false);
  Result<Trial> trial = this->trial(plan, true);
  impl_->options.memo = memo;
  return trial;
}

const sim::MemoCounters& Session::memo_counters() const { return impl_->resources.memo.counters(); }

Result<Census> Session::census(const Plan& given) {
  Plan plan = given;
  plan.world = WorldKind::sim;
  FD_TRY(Prepared* const prepared, impl_->prepare(plan.job));
  const Subject subject = impl_->subject_of(plan, *prepared);
  impl_->history.reset();
  Census census;
  SimWorld world(impl_->resources, subject, *impl_->bench_of(plan, *prepared).prober, impl_->history,
                 {.memo = impl_->options.memo, .probes = false, .census = &census});
  FD_TRY(const RunOutcome outcome, supervise(plan, world, world.observer(), impl_->history));
  if (outcome.finished) return census;
  return Error{.code = Code::invalid_input,
               .message = fmt::format("the run of {} whose calls were to be counted did not get to its end: {}",
                                      plan.scenario, outcome.why),
               .hint = "give a plan that ends well, such as one without faults"};
}

Result<RunReport> Session::run(const Plan& given, const RunOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  Plan plan = given;
  FD_TRY(Prepared* const prepared, impl_->prepare(plan));
  if (plan.corpus_digest && *plan.corpus_digest != prepared->corpus.digest) {
    return Error{
        .code = Code::mismatch,
        .message = fmt::format("the corpus {} has changed since the plan was made: its digest is {}, the plan's {}",
                               plan.job.data.corpus, prepared->corpus.digest.hex(), plan.corpus_digest->hex()),
        .hint = "give the text of then (--set job.data.corpus=PATH), or run the scenario again"};
  }
  plan.corpus_digest = prepared->corpus.digest;
  if (options.directory) FD_TRY_VOID(write_plan(plan, *options.directory / "plan.json"));
  const Golden* golden = nullptr;  // a job of no steps has none
  if (plan.job.steps > 0) {
    FD_TRY(golden, impl_->golden_of(*prepared, plan));
  }
  impl_->tell(fmt::format("running {} in the {} world", plan.scenario, to_string(plan.world)));
  History& history = impl_->history;
  auto watch = [&, told = std::size_t{0}]() mutable {
    if (impl_->options.watch) impl_->options.watch(history, std::exchange(told, history.size()));
  };
  FD_TRY(const RunOutcome outcome, impl_->play(plan, *prepared, options.directory.value_or(""), std::ref(watch)));
  watch();
  if (golden != nullptr) append_golden(*golden, history);
  if (options.directory) FD_TRY_VOID(save_history(history, (*options.directory / "history.jsonl").string()));

  const Case run(history, plan);
  const std::vector<Judged> judged = judge_all(run);
  RunReport report{.scenario = plan.scenario_path.empty() ? plan.scenario : plan.scenario_path,
                   .world = std::string(to_string(plan.world)),
                   .layout = to_string(plan.layout),
                   .seed = plan.seed,
                   .mutant = plan.mutant};
  report.verdict = verdict_of(outcome, judged);
  report.reason = reason_of(report.verdict, outcome, judged);
  report.expected = to_string(plan.expect);
  if (const auto final_state = final_state_of(history, plan.job.steps)) report.final_digest = final_state->hex();
  if (golden != nullptr) {
    report.golden_digest = golden->final_state().hex();
    report.golden_note = prepared->golden_note;
  }
  if (const auto difference = first_difference(run))
    report.first_difference = {.tensor = difference->tensor, .step = difference->step};
  for (const FaultSpec& fault : plan.faults)
    report.planned.push_back({.fault = describe(fault), .may_not_fire = fault.may_not_fire});
  report.fired = fired_in(history);
  for (const Judged& each : judged)
    report.properties.push_back({.name = std::string(each.property->name),
                                 .verdict = std::string(to_string(each.verdict.outcome)),
                                 .checked = each.verdict.checked,
                                 .evidence = each.verdict.evidence});
  report.attempts = timeline_of(history);
  report.accounting = account_of(history, plan);
  for (const GroupPlacement& group : placement_of(plan.job, plan.layout))
    report.placement.push_back(
        {.group = group.group, .ranks = group.size, .nodes = group.nodes, .words = to_string(group)});
  report.warnings = warnings_of(plan.job, plan.layout);
  for (const Blame& blame : attribution_of(run)) report.attribution.push_back(line_of(blame));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (options.directory) report.directory = options.directory->string();
  report.reproduce = reproduce_line(plan);
  return report;
}

}  // namespace firedrill
