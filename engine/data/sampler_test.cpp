#include "engine/data/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/data/corpus.h"

namespace firedrill {
namespace {

struct Case {
  Job job;
  std::int64_t bytes = 0;
};

Job job_of(int sequence, int rows, int accumulation, int lanes, LastBatch policy, bool shuffle, std::uint64_t seed) {
  Job job;
  job.model.sequence = sequence;
  job.batch = {.lane_micro_batch = rows, .accumulation = accumulation};
  job.lanes.dp = lanes;
  job.data.last_batch = policy;
  job.data.shuffle = shuffle;
  job.seed = seed;
  return job;
}

// Any shape that Sampler::make accepts.
Case any_case() {
  Case made;
  made.job = job_of(*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 7),
                    *rc::gen::element(LastBatch::drop, LastBatch::pad, LastBatch::keep), *rc::gen::arbitrary<bool>(),
                    *rc::gen::arbitrary<std::uint64_t>());
  const std::int64_t samples_min = made.job.data.last_batch == LastBatch::drop ? made.job.global_batch() : 1;
  const std::int64_t samples = samples_min + *rc::gen::inRange(0, 200);
  made.bytes = samples * made.job.model.sequence + 1 + *rc::gen::inRange(0, made.job.model.sequence);
  RC_TAG(std::string(made.job.data.last_batch == LastBatch::drop  ? "drop"
                     : made.job.data.last_batch == LastBatch::pad ? "pad"
                                                                  : "keep"));
  return made;
}

// What all lanes together draw in the batch at `state`, absent rows left out, with its owner.
struct Drawn {
  std::int64_t sample;
  int lane;
  int micro;
  auto operator<=>(const Drawn&) const = default;
};
std::vector<Drawn> drawn_at(const Sampler& sampler, const Job& job, const SamplerState& state) {
  std::vector<Drawn> drawn;
  for (int micro = 0; micro < job.batch.accumulation; ++micro) {
    for (int lane = 0; lane < job.lanes.dp; ++lane) {
      const Value rows = sampler.rows_for(state, lane, micro);
      for (const std::int64_t sample : rows.as<std::int64_t>()) {
        if (sample >= 0) drawn.push_back({.sample = sample, .lane = lane, .micro = micro});
      }
    }
  }
  return drawn;
}

TEST(Sampler, EveryEpochHasEverySampleExactlyOnce) {
  EXPECT_TRUE(rc::check([] {
    const Case c = any_case();
    const Sampler sampler = *Sampler::make(c.job, c.bytes);
    SamplerState state = sampler.start();
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<std::int64_t, int> times;
      std::int64_t padded = 0;
      std::int64_t batches = 0;
      for (; state.epoch == epoch; state = sampler.advance(state), ++batches) {
        const BatchShape shape = sampler.batch_at(state);
        const std::vector<Drawn> drawn = drawn_at(sampler, c.job, state);
        RC_ASSERT(static_cast<std::int64_t>(drawn.size()) == shape.valid_rows);
        RC_ASSERT(shape.valid_rows >= 1 && shape.valid_rows <= shape.rows);
        for (const Drawn& one : drawn) ++times[one.sample];
        padded += shape.valid_rows - shape.fresh_rows;
      }
      RC_ASSERT(batches == sampler.batches_per_epoch());
      std::int64_t total = 0;
      for (const auto& [sample, count] : times) {
        RC_ASSERT(sample >= 0 && sample < sampler.samples());
        total += count;
      }
      const std::int64_t dropped = c.job.data.last_batch == LastBatch::drop ? sampler.samples() % sampler.rows() : 0;
      RC_ASSERT(total == sampler.samples() - dropped + padded);
      if (padded == 0) RC_ASSERT(static_cast<std::int64_t>(times.size()) == total);
      RC_ASSERT(static_cast<std::int64_t>(times.size()) == sampler.samples() - dropped);
    }
  }));
}

TEST(Sampler, EveryPositionHasOneOwner) {
  EXPECT_TRUE(rc::check([] {
    const Case c = any_case();
    const Sampler sampler = *Sampler::make(c.job, c.bytes);
    SamplerState state = sampler.start();
    for (int batch = 0; batch < 5; ++batch, state = sampler.advance(state)) {
      // Walking micro-batches, lanes and rows in order visits the positions in order.
      std::int64_t position = 0;
      for (int micro = 0; micro < c.job.batch.accumulation; ++micro) {
        for (int lane = 0; lane < c.job.lanes.dp; ++lane) {
          const Value rows = sampler.rows_for(state, lane, micro);
          for (const std::int64_t sample : rows.as<std::int64_t>()) {
            RC_ASSERT(sample == sampler.sample_at(state, position++));
          }
        }
      }
      RC_ASSERT(position == sampler.rows());
    }
  }));
}

TEST(Sampler, ResumeAtAnyStepDrawsTheSameRows) {
  EXPECT_TRUE(rc::check([] {
    const Case c = any_case();
    std::vector<std::vector<Drawn>> golden;
    std::vector<SamplerState> saved;
    {
      const Sampler sampler = *Sampler::make(c.job, c.bytes);
      SamplerState state = sampler.start();
      for (int step = 0; step < 30; ++step, state = sampler.advance(state)) {
        saved.push_back(state);
        golden.push_back(drawn_at(sampler, c.job, state));
      }
    }
    const auto from = static_cast<std::size_t>(*rc::gen::inRange(0, 30));
    const Sampler resumed = *Sampler::make(c.job, c.bytes);
    SamplerState state = saved[from];
    for (std::size_t step = from; step < golden.size(); ++step, state = resumed.advance(state)) {
      RC_ASSERT(drawn_at(resumed, c.job, state) == golden[step]);
    }
  }));
}

TEST(Sampler, BatchesDoNotDependOnHowRowsAreCutIntoLanes) {
  const std::int64_t bytes = 16 * 53 + 1;
  const Job two = job_of(16, 6, 1, 2, LastBatch::keep, true, 7);
  const Job four = job_of(16, 3, 1, 4, LastBatch::keep, true, 7);
  const Sampler a = *Sampler::make(two, bytes);
  const Sampler b = *Sampler::make(four, bytes);
  SamplerState state = a.start();
  for (int batch = 0; batch < 12; ++batch, state = a.advance(state)) {
    for (std::int64_t position = 0; position < a.rows(); ++position) {
      EXPECT_EQ(a.sample_at(state, position), b.sample_at(state, position));
    }
  }
}

TEST(Sampler, ShuffledEpochsDifferAndUnshuffledOnesDoNot) {
  for (const bool shuffle : {false, true}) {
    const Job job = job_of(4, 8, 1, 1, LastBatch::drop, shuffle, 3);
    const Sampler sampler = *Sampler::make(job, 4 * 64 + 1);
    SamplerState first = sampler.start();
    SamplerState second{.epoch = 1, .cursor = 0, .epoch_seed = sampler.epoch_seed(1)};
    std::vector<std::int64_t> a, b;
    for (; first.epoch == 0; first = sampler.advance(first), second = sampler.advance(second)) {
      for (std::int64_t position = 0; position < sampler.rows(); ++position) {
        a.push_back(sampler.sample_at(first, position));
        b.push_back(sampler.sample_at(second, position));
      }
    }
    EXPECT_EQ(a == b, !shuffle);
    EXPECT_EQ(std::is_sorted(a.begin(), a.end()), !shuffle);
  }
}

TEST(Sampler, NextEpochBeginsAtItsStartWithItsOwnSeed) {
  for (const LastBatch policy : {LastBatch::drop, LastBatch::pad, LastBatch::keep}) {
    const Sampler sampler = *Sampler::make(job_of(4, 8, 1, 1, policy, true, 3), 4 * 19 + 1);
    SamplerState state = sampler.start();
    for (std::int64_t batch = 0; batch < 5 * sampler.batches_per_epoch(); ++batch) state = sampler.advance(state);
    EXPECT_EQ(state, (SamplerState{.epoch = 5, .cursor = 0, .epoch_seed = sampler.epoch_seed(5)}));
    EXPECT_NE(sampler.epoch_seed(5), sampler.epoch_seed(4));
  }
}

TEST(Sampler, PaddingRepeatsTheStartOfTheSameEpoch) {
  const Job job = job_of(4, 2, 1, 4, LastBatch::pad, true, 3);
  const Sampler sampler = *Sampler::make(job, 4 * 11 + 1);
  const SamplerState first = sampler.start();
  const SamplerState last = sampler.advance(first);
  EXPECT_EQ(last.epoch, 0);
  EXPECT_EQ(sampler.batch_at(last).fresh_rows, 3);
  EXPECT_EQ(sampler.batch_at(last).valid_rows, 8);
  for (int position = 3; position < 8; ++position) {
    EXPECT_EQ(sampler.sample_at(last, position), sampler.sample_at(first, position - 3));
  }
  EXPECT_EQ(sampler.advance(last).epoch, 1);
  EXPECT_EQ(sampler.advance(last).cursor, 0);
}

TEST(Sampler, SeedOfTheStateDecidesTheOrder) {
  const Job job = job_of(4, 8, 1, 1, LastBatch::keep, true, 3);
  const Sampler sampler = *Sampler::make(job, 4 * 64 + 1);
  const SamplerState right{.epoch = 1, .cursor = 8, .epoch_seed = sampler.epoch_seed(1)};
  SamplerState reset = right;
  reset.epoch_seed = sampler.epoch_seed(0);
  EXPECT_FALSE(sampler.rows_for(right, 0, 0).same_as(sampler.rows_for(reset, 0, 0)));
}

TEST(Sampler, TooShortTextIsRefusedWithNumbers) {
  const Job job = job_of(16, 2, 1, 4, LastBatch::drop, true, 1);
  const Result<Sampler> no_sample = Sampler::make(job, 16);
  ASSERT_TRUE(no_sample.failed_with(Code::invalid_input));
  EXPECT_NE(no_sample.error().message.find("16 bytes"), std::string::npos);
  EXPECT_NE(no_sample.error().message.find("17 bytes"), std::string::npos);
  const Result<Sampler> no_batch = Sampler::make(job, 16 * 8);
  ASSERT_TRUE(no_batch.failed_with(Code::invalid_input));
  EXPECT_NE(no_batch.error().message.find("129 bytes"), std::string::npos);
  EXPECT_TRUE(Sampler::make(job, 16 * 8 + 1));
  EXPECT_TRUE(Sampler::make(job, 0).failed_with(Code::invalid_input));
}

TEST(Permutation, IsABijectionForEveryCountAndSeed) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, 700);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t to = permuted(i, count, seed);
      RC_ASSERT(to >= 0 && to < count);
      seen.insert(to);
    }
    RC_ASSERT(static_cast<std::int64_t>(seen.size()) == count);
  }));
}

TEST(Permutation, EveryElementCanGoAnywhere) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> times;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    for (std::int64_t i = 0; i < 5; ++i) ++times[{i, permuted(i, 5, Rng(seed).next())}];
  }
  EXPECT_EQ(times.size(), 25U);
  for (const auto& [pair, count] : times) EXPECT_NEAR(count, 1000, 250);
}

TEST(Gather, CutsSamplesWithTheirTargets) {
  DirectCompute compute;
  const Corpus corpus = corpus_from("abcdefghijk");
  const std::vector<std::int64_t> samples = {1, -1, 0};
  const Result<Value> result = run_kernel(compute, gather_kernel, GatherScalars{.sequence = 4},
                                          {corpus.text, Value::copy_of(std::span(samples))});
  ASSERT_TRUE(result);
  const Value& tokens = (*result)[0];
  EXPECT_EQ(tokens.shape(), (Shape{3, 5}));
  EXPECT_EQ(tokens.text(), std::string("efghi") + std::string(5, '\0') + "abcde");
  EXPECT_TRUE((*result)[1].same_as(Value::copy_of(std::string_view("\1\0\1", 3))));
}

TEST(Gather, RefusesASampleOutsideOfTheText) {
  DirectCompute compute;
  const std::vector<std::int64_t> samples = {2};
  const Result<Value> result = run_kernel(compute, gather_kernel, GatherScalars{.sequence = 4},
                                          {Value::copy_of("abcdefghijk"), Value::copy_of(std::span(samples))});
  EXPECT_TRUE(result.failed_with(Code::invalid_input));
}

}  // namespace
}  // namespace firedrill
