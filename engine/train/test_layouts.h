// What tests of layouts share: a text, a run of a job under a layout, and the comparison with another one's bits.
#pragma once

#include <gtest/gtest.h>

#include "engine/train/crew.h"

namespace firedrill {

inline Value text_to_learn() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + (i * i / 3 + i) % 11);
  return Value::copy_of(text);
}

inline CrewResult train(const Job& job, const Layout& layout, const Value& text) {
  EXPECT_EQ(mistakes_in(job), std::vector<std::string>());
  EXPECT_EQ(mistakes_in(layout, job), std::vector<std::string>());
  const Model model(job);
  const Result<Sampler> sampler = Sampler::make(job, text.count());
  return Crew(job, layout, model, *sampler, text).run(job.steps);
}

// `golden`: of one rank, which holds everything whole.
inline void expect_same(const CrewResult& result, const CrewResult& golden, const Layout& layout) {
  EXPECT_EQ(result.losses, golden.losses) << to_string(layout);
  for (std::size_t step = 0; step < golden.held.size(); ++step) {
    std::map<std::string, std::int64_t> covered;
    for (const auto& [name, run] : result.held[step]) {
      const auto whole = golden.held[step].find(run.tensor);
      ASSERT_TRUE(whole != golden.held[step].end()) << to_string(layout) << ": there is no " << name;
      const Value part = whole->second.value.slice(run.begin, run.value.count());
      ASSERT_EQ(run.value.digest(), part.digest()) << to_string(layout) << ": step " << step + 1 << ", " << name;
      covered[run.tensor] += run.value.count();
    }
    for (const auto& [name, run] : golden.held[step]) {
      EXPECT_EQ(covered[name], run.value.count()) << to_string(layout) << ": " << name;
    }
  }
}

}  // namespace firedrill
