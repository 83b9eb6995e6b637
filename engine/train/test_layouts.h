// What tests of layouts share: a text, a run of a job under a layout, and the comparison with another one's bits.
#pragma once

#include <gtest/gtest.h>

#include "engine/train/crew.h"

namespace firedrill {

// In words, what a state has otherwise than the golden's (one rank's, so whole); empty: nothing, and nothing is
// missing.
inline std::string difference(const HeldRuns& state, const HeldRuns& golden) {
  std::map<std::string, std::int64_t> covered;
  for (const auto& [name, run] : state) {
    const auto whole = golden.find(run.tensor);
    if (whole == golden.end()) return name + " is not in the golden";
    if (run.value.digest() != whole->second.value.slice(run.begin, run.value.count()).digest()) return name;
    covered[run.tensor] += run.value.count();
  }
  for (const auto& [name, run] : golden) {
    if (covered[name] != run.value.count()) return name + " is not held whole";
  }
  return {};
}

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
    EXPECT_EQ(difference(result.held[step], golden.held[step]), std::string())
        << to_string(layout) << ": step " << step + 1;
  }
}

}  // namespace firedrill
