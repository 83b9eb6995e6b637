#include "harness/explore/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "faults/persistence/trace_file.h"
#include "harness/explore/test_subject.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> two_ranks = {"layout.dp=2"};

std::vector<std::string> refusals_of(const std::string& scenario) {
  const Loaded<Scenario> loaded = load_scenario("scenarios/storage/" + scenario + ".yaml");
  FD_CHECK(static_cast<bool>(loaded.value), "{}", scenario);
  return refusals_for_crashcheck(make_plan(*loaded.value));
}

TEST(Cases, AFaultThatNoTraceHoldsIsRefusedWithItsPlaceAndOthersAreNot) {
  for (const std::string kind :
       {"bit_flip_at_rest", "file_vanishes", "lying_sync", "stale_listing", "stale_stat", "late_visibility"}) {
    const auto refusals = refusals_of(kind);
    ASSERT_FALSE(refusals.empty()) << kind;
    EXPECT_THAT(refusals.front(), AllOf(HasSubstr("scenarios/storage/" + kind + ".yaml:"), HasSubstr(kind + ": "),
                                        HasSubstr("`firedrill run`")));
  }
  for (const std::string kind : {"failed_sync", "torn_write", "dropped_write", "lose_unsynced_data", "slow_disk"}) {
    EXPECT_THAT(refusals_of(kind), IsEmpty()) << kind;
  }
}

TEST(Cases, AKillThatNoAttemptFollowsIsAnErrorAndNoPass) {
  const auto subject = subject_of("crash_in_recovery", {"layout.dp=2", "recovery.budget=0"});
  const auto cases = cases_of(*subject, spec_of("crash_in_recovery"), {}, {});
  ASSERT_TRUE(cases.failed_with(Code::unavailable));
  EXPECT_THAT(describe(cases.error()), AllOf(HasSubstr("kill rank"), HasSubstr("did not get to its end")));
}

TEST(Cases, APowerLossBeyondTheRunIsAMistakeThatSaysHowFarTheRunGoes) {
  const auto subject = subject_of("crash_in_recovery", two_ranks);
  for (const bool kills : {false, true}) {
    const auto step = cases_of(*subject, {.step = 99, .kill_everywhere = kills}, {}, {});
    ASSERT_TRUE(step.failed_with(Code::invalid_input));
    EXPECT_THAT(step.error().message, AllOf(HasSubstr("step 99 of attempt 1"), HasSubstr("last time at step 6")));
    const auto attempt = cases_of(*subject, {.attempt = 7, .kill_everywhere = kills}, {}, {});
    ASSERT_TRUE(attempt.failed_with(Code::invalid_input));
    EXPECT_THAT(attempt.error().message, AllOf(HasSubstr("attempt 7"), HasSubstr("last attempt is 1")));
  }
}

crash::Trace read_again(const crash::Trace& trace) {
  std::stringstream file;
  crash::write_trace(file, trace);
  auto read = crash::read_trace(file);
  FD_CHECK(static_cast<bool>(read), "{}", describe(read.error()));
  return *std::move(read);
}

// What is explored, as text.
std::string text_of(const std::vector<CrashCase>& cases) {
  std::ostringstream text;
  for (const CrashCase& one : cases) {
    crash::write_trace(text, one.trace);
    text << one.certain.size() << ' ' << (one.required ? to_string(*one.required) : "none") << '\n';
  }
  return text.str();
}

TEST(Cases, AKeptTraceGivesTheSameCasesAgain) {
  const auto subject = subject_of("one_publish", two_ranks);
  const CrashSpec spec = spec_of("one_publish");
  const auto first = cases_of(*subject, spec, {}, {});
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->cases.front().required);
  const auto again = cases_of(*subject, spec, read_again(first->recorded), {});
  ASSERT_TRUE(again);
  EXPECT_EQ(text_of(again->cases), text_of(first->cases));
}

TEST(Cases, ATraceOfAnotherRunIsRefused) {
  const CrashSpec spec = spec_of("one_publish");
  const auto subject = subject_of("one_publish", two_ranks);
  const auto right = cases_of(*subject, spec, {}, {});
  ASSERT_TRUE(right);
  const auto mutant = subject_of("one_publish", two_ranks, "protocol_latest_file");
  EXPECT_TRUE(cases_of(*mutant, spec, right->recorded, {}).failed_with(Code::invalid_input));
  const auto longer = subject_of("one_publish", {"layout.dp=2", "job.steps=6"});
  EXPECT_TRUE(cases_of(*longer, spec, right->recorded, {}).failed_with(Code::invalid_input));
  EXPECT_TRUE(cases_of(*subject, {.step = 2}, right->recorded, {}).failed_with(Code::invalid_input));
  crash::Trace nobody = right->recorded;
  nobody.owner.clear();
  EXPECT_TRUE(cases_of(*subject, spec, nobody, {}).failed_with(Code::invalid_input));
}

TEST(Cases, AllTracesThatRanOutOfTimeShareOneTimeOfSampling) {
  const auto subject = subject_of("crash_in_recovery", two_ranks);
  const CrashCheckResult result = checked(*subject, spec_of("crash_in_recovery"),
                                          {.engine = EngineKind::lazy, .seconds_max = 1e-6, .sample_seconds = 1.0});
  EXPECT_FALSE(result.complete);
  EXPECT_GT(result.cases, 30U);
  EXPECT_EQ(result.notes.size(), result.cases);
  EXPECT_LT(result.seconds, 15.0);
}

}  // namespace
}  // namespace firedrill
