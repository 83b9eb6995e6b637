// What the tests of single properties expect. For tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "harness/check/all.h"
#include "harness/check/drill_builder.h"

namespace firedrill {

inline void expect_pass(DrillBuilder& drill, Verdict (*property)(const Case&)) {
  const Verdict verdict = drill.judge_with(property);
  EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.evidence;
  EXPECT_GT(verdict.checked, 0);
}

inline void expect_fail(DrillBuilder& drill, Verdict (*property)(const Case&), std::string_view evidence) {
  const Verdict verdict = drill.judge_with(property);
  EXPECT_EQ(verdict.outcome, Outcome::fail) << verdict.evidence;
  EXPECT_THAT(verdict.evidence, ::testing::HasSubstr(std::string(evidence)));
}

inline void expect_unknown(DrillBuilder& drill, Verdict (*property)(const Case&), std::string_view evidence) {
  const Verdict verdict = drill.judge_with(property);
  EXPECT_EQ(verdict.outcome, Outcome::unknown) << verdict.evidence;
  EXPECT_THAT(verdict.evidence, ::testing::HasSubstr(std::string(evidence)));
}

// A drill with a whole good run in it, which the property passes.
class PropertyTest : public ::testing::Test {
 protected:
  explicit PropertyTest(Verdict (*property)(const Case&)) : property_(property) {
    drill_.whole_run();
    expect_pass(drill_, property_);
  }
  void expect_fail(std::string_view evidence) { firedrill::expect_fail(drill_, property_, evidence); }
  void expect_unknown(std::string_view evidence) { firedrill::expect_unknown(drill_, property_, evidence); }
  void expect_pass_still() { firedrill::expect_pass(drill_, property_); }

  DrillBuilder drill_;
  Verdict (*property_)(const Case&);
};

}  // namespace firedrill
