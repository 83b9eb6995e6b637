// What makes moe-nano a test of mixtures at all: tokens are dropped in it, experts stay empty, and outputs come
// together in the order of the experts wherever these lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/data/corpus.h"
#include "engine/model/moe_model.h"
#include "engine/model/numerics.h"
#include "engine/train/test_layouts.h"

namespace firedrill {
namespace {

// As scenarios/jobs/moe-nano.yaml.
Job moe_nano() {
  Job job;
  job.model = {.layers = 2, .width = 16, .heads = 2, .hidden = 16, .sequence = 16, .dropout = 0.1, .experts = 8};
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.batch = {.lane_micro_batch = 1, .accumulation = 2};
  job.optimizer = {.lr = 0.003, .warmup_steps = 4, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
  job.steps = 12;
  return job;
}

// Looks at what the routing kernel decides on one rank that has one source lane.
class RoutingProbe final : public ForwardingCompute {
 public:
  explicit RoutingProbe(Compute& inner) : ForwardingCompute(inner) {}

  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    if (kernel.name != "model.moe.route.forward") return inner_.run(kernel, scalars, inputs);
    const auto s = scalars_as<MoeScalars>(scalars);
    // A router's weights change with every step: they say which layer and step it is.
    auto [window, fresh] = taken_.try_emplace(inputs[0].digest().hex(), s.experts, 0);
    const Value mask = inputs[2];
    Result<Value> routed = inner_.run(kernel, scalars, inputs);
    if (!routed) return routed;
    const Value places = (*routed)[0];
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < places.as<std::int32_t>().size(); ++i) {
      if (places.as<std::int32_t>()[i] < 0) continue;
      ++taken;
      ++window->second[i / s.capacity];
    }
    std::int64_t rows = s.rows;
    if (mask) rows = std::ranges::count_if(mask.as<std::uint8_t>(), [](std::uint8_t row) { return row != 0; });
    dropped_ += rows * s.tokens * s.top_k - taken;
    chosen_ += rows * s.tokens * s.top_k;
    return routed;
  }

  std::int64_t chosen() const { return chosen_; }
  std::int64_t dropped() const { return dropped_; }
  // Layers times steps, and those of them in which an expert got nothing of this lane, in no micro-batch.
  std::int64_t windows() const { return std::ssize(taken_); }
  std::int64_t windows_with_an_idle_expert() const {
    return std::ranges::count_if(taken_, [](const auto& window) { return std::ranges::count(window.second, 0) > 0; });
  }

 private:
  std::map<std::string, std::vector<std::int64_t>> taken_;  // by router: places taken, by expert
  std::int64_t chosen_ = 0;
  std::int64_t dropped_ = 0;
};

class ExpertRouting : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  void SetUp() override {
    const Result<Corpus> corpus = load_corpus("/usr/share/common-licenses/GPL-3");
    ASSERT_TRUE(corpus) << describe(corpus.error());
    text_ = split_corpus(*corpus, 0).training;
  }
  Value text_;
};

TEST_F(ExpertRouting, MoeNanoDropsTokensAndLeavesExpertsIdle) {
  const Job job = moe_nano();
  const Layout lanes{.dp = 4, .cp = 2};
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text_.count());
  ASSERT_TRUE(sampler) << describe(sampler.error());
  DirectCompute direct;
  std::vector<RoutingProbe> probes(static_cast<std::size_t>(lanes.world_size()), RoutingProbe(direct));
  Crew crew(job, lanes, model, *sampler, text_);
  crew.compute_with([&](int rank) -> Compute& { return probes[static_cast<std::size_t>(rank)]; });
  crew.run(job.steps);
  for (const RoutingProbe& probe : probes) {
    EXPECT_EQ(probe.windows(), std::int64_t{job.model.layers} * job.steps);
    EXPECT_GT(probe.dropped(), 0);
    EXPECT_LT(probe.dropped(), probe.chosen() / 4);  // measured: 130 to 198 of 1536
    EXPECT_GT(probe.windows_with_an_idle_expert(), 0);
  }
}

// What three experts gave for the first token, by their numbers; the sum of floats tells in which order they came.
TEST_F(ExpertRouting, OutputsOfATokenAreAddedInTheOrderOfTheExperts) {
  const Job job = moe_nano();
  DirectCompute compute;
  const MoeModel model(job, compute);
  const std::int64_t capacity = expert_capacity(job.model, job.model.sequence / job.lanes.cp);
  const auto sum_of = [&](const std::vector<float>& outputs) {
    MutableValue places(DType::i32, Shape{job.model.experts, capacity});
    std::ranges::fill(places.as<std::int32_t>(), -1);
    std::vector<Value> out;
    for (int expert = 0; expert < job.model.experts; ++expert) {
      MutableValue rows(DType::f32, Shape{capacity, job.model.width});
      std::ranges::fill(rows.as<float>(), 0.0F);
      const auto e = static_cast<std::size_t>(expert);
      if (e < outputs.size()) {
        places.as<std::int32_t>()[e * static_cast<std::size_t>(capacity)] = 0;
        rows.as<float>()[0] = outputs[e];
      }
      out.push_back(std::move(rows).freeze());
    }
    const Result<Value> combined = model.combine(std::move(places).freeze(), Value(), Value::pack(out));
    return combined->as<float>()[0];
  };
  EXPECT_EQ(sum_of({1e8F, -1e8F, 1.0F}), 1.0F);
  EXPECT_EQ(sum_of({1.0F, 1e8F, -1e8F}), 0.0F);
}

}  // namespace
}  // namespace firedrill
