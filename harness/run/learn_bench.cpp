// Shows that the engine really learns: trains a job on its corpus and prints the loss on the held-out text, in nats per
// byte, before and while it trains.
//
//   learn_bench [JOB.yaml]      default: scenarios/jobs/small.yaml
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "engine/data/corpus.h"
#include "engine/model/numerics.h"
#include "engine/train/lone_rank.h"
#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

template <class T>
T get(Result<T> result) {
  FD_CHECK(result.ok(), "{}", describe(result.error()));
  return *std::move(result);
}

// Mean loss over all whole samples of `text`, without dropout.
double loss_on(const Value& text, const Job& job, const Model& model, const TrainingState& state, Compute& compute) {
  const std::int64_t sequence = job.model.sequence;
  const std::int64_t samples = (text.count() - 1) / sequence;
  double sum = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const Value tokens = text.slice(sample * sequence, sequence + 1).reinterpret(DType::u8, Shape{1, sequence + 1});
    Value x = tokens;
    for (std::size_t i = 0; i < model.head(); ++i)
      x = get(model.forward(compute, i, state.segments[i].parameters, x, std::nullopt));
    const Value loss =
        get(model.loss(compute, state.segments[model.head()].parameters, x, {.tokens = tokens, .row_mask = {}}));
    sum += static_cast<double>(loss.as<float>()[0]);
  }
  return sum / static_cast<double>(samples * sequence);
}

int learn(const char* path) {
  Loaded<Job> loaded = load_job(path);
  for (const std::string& mistake : loaded.mistakes) fmt::print(stderr, "{}\n", mistake);
  if (!loaded) return 1;
  const Job& job = *loaded;
  const Model model(job);
  const Corpus corpus = get(load_corpus(job.data.corpus));
  const CorpusSplit split = split_corpus(corpus, job.data.held_out);
  const Sampler sampler = get(Sampler::make(job, split.training.count()));
  fmt::print("{}: {} parameters, {} bytes to train on, {} held out, global batch {} x {}\n", job.name,
             model.parameter_count(), split.training.count(), split.held_out.count(), job.global_batch(),
             job.model.sequence);
  LoneRank rank(job, model, sampler, split.training);
  rank.run([&](Trainer& trainer, Compute& compute) {
    const auto began = std::chrono::steady_clock::now();
    fmt::print("step {:4}: held-out loss {:.3f} nats per byte\n", 0,
               loss_on(split.held_out, job, model, trainer.state(), compute));
    for (int step = 1; step <= job.steps; ++step) {
      const StepReport report = get(trainer.step());
      if (step % 50 != 0 && step != job.steps) continue;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      fmt::print("step {:4}: held-out loss {:.3f} nats per byte, training loss {:.3f}, {:.1f} s\n", step,
                 loss_on(split.held_out, job, model, trainer.state(), compute), report.loss, seconds);
      std::fflush(stdout);
    }
  });
  return 0;
}

}  // namespace
}  // namespace firedrill

int main(int argc, char** argv) {
  firedrill::pin_numerics();
  return firedrill::learn(argc > 1 ? argv[1] : "scenarios/jobs/small.yaml");
}
