#include "harness/explore/subject.h"

#include "engine/train/device/job_compute.h"
#include "harness/golden/record.h"
#include "harness/mutants/mutants.h"

namespace firedrill {

ExploreSubject::ExploreSubject(Plan plan, Corpus corpus, CorpusSplit split, Sampler sampler)
    : plan_(std::move(plan)),
      corpus_(std::move(corpus)),
      split_(std::move(split)),
      model_(plan_.job),
      sampler_(std::move(sampler)) {}

Result<std::unique_ptr<ExploreSubject>> ExploreSubject::make(const Plan& plan,
                                                             const std::filesystem::path& golden_directory) {
  FD_TRY(Corpus corpus, load_corpus(plan.job.data.corpus));
  CorpusSplit split = split_corpus(corpus, plan.job.data.held_out);
  FD_TRY(Sampler sampler, Sampler::make(plan.job, split.training.count()));
  std::unique_ptr<ExploreSubject> subject(
      new ExploreSubject(plan, std::move(corpus), std::move(split), std::move(sampler)));
  const std::string numerics = numerics_key_of(plan.job);
  subject->identity_ =
      make_run_identity(subject->plan_.job, plan.layout, plan.run_id, subject->corpus_.digest, numerics);
  const GoldenKey key{.job = digest_of_job(plan.job), .corpus = subject->corpus_.digest, .numerics = numerics};
  if (!golden_directory.empty()) {
    Result<Golden> recorded = read_golden(golden_directory / golden_file_name(plan.job.name, key));
    if (recorded && recorded->key == key) {
      subject->golden_ = *std::move(recorded);
      return subject;
    }
    if (!recorded && !recorded.failed_with(Code::not_found)) return std::move(recorded).error();
  }
  FD_TRY(subject->golden_, record_golden(subject->plan_.job, subject->model_, subject->corpus_, numerics));
  return subject;
}

Subject ExploreSubject::to_run(const Plan& plan) const {
  return {.plan = plan,
          .model = model_,
          .sampler = sampler_,
          .text = split_.training,
          .identity = identity_,
          .protocol = [this] { return make_protocol(plan_.mutant); },
          .rules = [this] { return make_rules(plan_.mutant); },
          .liveness = [this] { return make_liveness(plan_.mutant); }};
}

CheckSubject ExploreSubject::to_check(int attempt) const {
  return {.job = plan_.job,
          .layout = plan_.layout,
          .model = model_,
          .identity = identity_,
          .golden = golden_,
          .protocol = [this] { return make_protocol(plan_.mutant); },
          .attempt = attempt};
}

}  // namespace firedrill
