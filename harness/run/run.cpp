#include "harness/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "engine/job/without_checks.h"
#include "engine/train/device/job_compute.h"
#include "harness/golden/record.h"
#include "harness/history/lines.h"
#include "harness/mutants/mutants.h"
#include "harness/run/golden_cache.h"
#include "harness/run/outcome.h"
#include "harness/world/process_world.h"
#include "harness/world/rank_collectives.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

// Of the supervisor, whose events go into the history at once.
class WatchedObserver final : public ForwardingObserver {
 public:
  WatchedObserver(Observer& inner, const History& history, std::function<void(const Event&)> heard)
      : ForwardingObserver(inner), history_(history), heard_(std::move(heard)) {}
  void event(const Event& event) override {
    inner_.event(event);
    heard_(history_[history_.size() - 1]);  // with its time
  }

 private:
  const History& history_;
  std::function<void(const Event&)> heard_;
};

// A job ready to run: what is made once for all its runs.
struct Prepared {
  std::string key;  // of the job and its corpus
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
  std::optional<LayoutShape> shape;  // of a layout of few ranks: it grows with their square
};
constexpr int shaped_ranks_max = 64;

constexpr std::size_t known_jobs_max = 16;

// Of the runs in the sim world, one in so many checks what the others rely on.
constexpr std::uint64_t digest_check_every = 1'000;
constexpr std::uint64_t without_memo_every = 10'000;

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
  Bench& bench_of(const Plan& plan, const Layout& layout, Prepared& prepared);
  Subject subject_of(const Plan& plan, Prepared& prepared);
  Result<RunOutcome> play(const Plan& plan, Prepared& prepared, const std::filesystem::path& directory,
                          bool watched = false);
  void forget_old_words();
  const std::string& numerics(const Job& job);
  void tell(std::string_view what) const {
    if (options.progress) options.progress(what);
  }

  SessionOptions options;
  std::optional<Tables> tables{std::in_place};
  History history{*tables};
  SimResources resources;
  Auditor auditor;
  std::map<std::string, std::unique_ptr<Prepared>> prepared;  // by job digest and corpus path
  std::vector<std::pair<Job, Prepared*>> known_jobs;          // few, so that their digests need not be made again
  std::map<std::string, Bench> benches;                       // by that, catalog, run, mutant and layout
  std::map<std::string, ProbeAnswers> answers_of_runs;        // by the same without the layout
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
  const auto known = std::ranges::find(known_jobs, job, &std::pair<Job, Prepared*>::first);
  if (known != known_jobs.end()) return known->second;
  const std::string key = fmt::format("{}{}{}{}", digest_of_job(job).hex(), static_cast<int>(job.device),
                                      static_cast<int>(job.collectives), job.data.corpus);
  auto& slot = prepared[key];
  if (!slot) {
    FD_TRY(Corpus corpus, load_corpus(job.data.corpus));
    CorpusSplit split = split_corpus(corpus, job.data.held_out);
    FD_TRY(Sampler sampler, Sampler::make(job, split.training.count()));
    SampleDigests digests(split.training, job.model.sequence);
    slot = std::make_unique<Prepared>(Prepared{.key = key,
                                               .job = job,
                                               .corpus = std::move(corpus),
                                               .text = std::move(split.training),
                                               .model = Model(job),
                                               .sampler = std::move(sampler),
                                               .digests = std::move(digests)});
  }
  if (known_jobs.size() >= known_jobs_max) known_jobs.clear();
  known_jobs.emplace_back(job, slot.get());
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

Bench& Session::Impl::bench_of(const Plan& plan, const Layout& layout, Prepared& job) {
  // The catalog is no part of a job's digest, and yet decides where a probe looks.
  const std::string run =
      fmt::format("{}|{}|{}|{}", job.key, static_cast<int>(plan.job.checkpoint.catalog), plan.run_id, plan.mutant);
  auto [slot, fresh] = benches.try_emplace(fmt::format("{}|{}", run, to_string(without_checks(layout))));
  Bench& bench = slot->second;
  if (fresh) {
    bench.job = plan.job;
    bench.identity = make_run_identity(bench.job, layout, plan.run_id, job.corpus.digest, numerics(job.job));
    if (layout.world_size() <= shaped_ranks_max) bench.shape = layout_shape_of(bench.job, layout, job.model);
    bench.prober = std::make_unique<Prober>(make_protocol(plan.mutant), bench.job, bench.identity, *tables,
                                            Prober::Shared{.auditor = &auditor, .of_whole = &answers_of_runs[run]});
  }
  return bench;
}

Subject Session::Impl::subject_of(const Plan& plan, Prepared& job) {
  const Bench& bench = bench_of(plan, plan.layout, job);
  const Bench* restarts = plan.recovery.layout ? &bench_of(plan, *plan.recovery.layout, job) : nullptr;
  const auto shape_in = [](const Bench& one) { return one.shape ? &*one.shape : nullptr; };
  return {.plan = plan,
          .model = job.model,
          .sampler = job.sampler,
          .text = job.text,
          .identity = bench.identity,
          .protocol = [&plan] { return make_protocol(plan.mutant); },
          .publisher = [&plan] { return make_publisher(plan.mutant); },
          .rules = [&plan] { return make_rules(plan.mutant); },
          .liveness = [&plan] { return make_liveness(plan.mutant); },
          .digests = &job.digests,
          .shape = shape_in(bench),
          .shape_of_restarts = restarts != nullptr ? shape_in(*restarts) : nullptr,
          .identity_of_restarts = restarts != nullptr ? &restarts->identity : nullptr};
}

// Every run has words, states and answers of its own: a session of a million runs would hold them all.
void Session::Impl::forget_old_words() {
  history.reset();
  const std::size_t most =
      std::max({tables->names.size(), tables->states.size(), static_cast<std::size_t>(tables->probes.size())});
  if (most < options.words_max) return;
  benches.clear();
  answers_of_runs.clear();
  tables.emplace();
}

Result<RunOutcome> Session::Impl::play(const Plan& plan, Prepared& job, const std::filesystem::path& directory,
                                       bool watched) {
  forget_old_words();
  Bench& bench = bench_of(plan, plan.layout, job);
  const Subject subject = subject_of(plan, job);
  const auto watch = watched ? options.watch : nullptr;
  if (plan.world == WorldKind::sim) {
    const ConfinedValues of_this_thread;
    ++sim_runs;
    SimWorld world(resources, subject, *bench.prober, history,
                   {.memo = options.memo && sim_runs % without_memo_every != 0,
                    .probes = options.probes,
                    .digest_check = sim_runs % digest_check_every == 0});
    auto tell_new = [&, told = std::size_t{0}]() mutable {
      for (; watch && told < history.size(); ++told) watch(history, history[told]);
    };
    Result<RunOutcome> outcome = supervise(plan, world, world.observer(), history, std::ref(tell_new));
    tell_new();
    return outcome;
  }
  const auto heard = [&](const Event& event) {
    if (watch) watch(history, event);
  };
  FD_TRY(const std::unique_ptr<ProcessWorld> world,
         ProcessWorld::start(subject, *bench.prober, history, {.directory = directory, .heard = heard}));
  WatchedObserver observer(world->observer(), history, heard);
  return supervise(plan, *world, observer, history);
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
  impl_->forget_old_words();
  const Subject subject = impl_->subject_of(plan, *prepared);
  const ConfinedValues of_this_thread;
  Census census;
  SimWorld world(impl_->resources, subject, *impl_->bench_of(plan, plan.layout, *prepared).prober, impl_->history,
                 {.memo = impl_->options.memo, .probes = false, .census = &census});
  FD_TRY(const RunOutcome outcome, supervise(plan, world, world.observer(), impl_->history));
  census.shrink();
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
  FD_TRY(const RunOutcome outcome, impl_->play(plan, *prepared, options.directory.value_or(""), true));
  if (golden != nullptr) append_golden(*golden, history);
  if (options.directory) FD_TRY_VOID(save_history(history, (*options.directory / "history.jsonl").string()));

  const Case run(history, plan);
  const std::vector<Judged> judged = judge_all(run);
  RunReport report = report_of(run, outcome, judged);
  if (golden != nullptr) {
    report.golden_digest = golden->final_state().hex();
    report.golden_note = prepared->golden_note;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (options.directory) report.directory = options.directory->string();
  report.reproduce = reproduce_line(plan);
  return report;
}

}  // namespace firedrill
