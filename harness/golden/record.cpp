#include "harness/golden/record.h"

#include <fmt/format.h>

#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {

namespace {

// Runs the job undisturbed on one rank, and calls `read` with its history.
template <class Read>
auto undisturbed(const Job& job, const Layout& layout, const Model& model, const Corpus& corpus,
                 const std::string& numerics_key, Read read) -> decltype(read(std::declval<const History&>())) {
  // One rank, so that no exchange has a part in it, and one checkpoint at the end, since saving changes nothing.
  Plan plan;
  plan.scenario = job.name;
  plan.job = job;
  plan.job.checkpoint.every = 0;
  plan.job.checkpoint.mode = PublishMode::sync;
  plan.layout = layout;
  plan.run_id = run_id_of(job);
  plan.recovery.budget = 0;
  const CorpusSplit split = split_corpus(corpus, job.data.held_out);
  FD_TRY(const Sampler sampler, Sampler::make(job, split.training.count()));
  const RunIdentity identity = make_run_identity(job, plan.layout, plan.run_id, corpus.digest, numerics_key);
  const Subject subject{
      .plan = plan, .model = model, .sampler = sampler, .text = split.training, .identity = identity, .protocol = [] {
        return std::make_unique<Protocol>();
      }};
  Tables tables;
  History history(tables);
  Prober prober(std::make_unique<Protocol>(), job, identity, tables);
  SimResources resources;
  SimWorld world(resources, subject, prober, history, {.memo = false, .probes = false});
  FD_TRY(const RunOutcome outcome, supervise(plan, world, world.observer(), history));
  if (!outcome.finished) {
    return Error{.code = Code::internal,
                 .message = fmt::format("the undisturbed run of {} did not finish: {}", job.name, outcome.why)};
  }
  return read(history);
}

}  // namespace

Result<Golden> record_golden(const Job& job, const Model& model, const Corpus& corpus,
                             const std::string& numerics_key) {
  return undisturbed(job, {}, model, corpus, numerics_key, [&](const History& history) {
    return golden_from(history, job, {.job = digest_of_job(job), .corpus = corpus.digest, .numerics = numerics_key});
  });
}

Status record_runs(Golden& golden, const Job& job, const Model& model, const Corpus& corpus) {
  return undisturbed(job, {.zero = 3}, model, corpus, golden.key.numerics,
                     [&](const History& history) { return add_runs(history, golden); });
}

}  // namespace firedrill
