#include "harness/explore/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "faults/persistence/counter.h"
#include "harness/explore/oracle.h"
#include "harness/explore/sample.h"
#include "harness/explore/story.h"
#include "harness/explore/test_subject.h"

namespace firedrill {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::vector<std::string> two_ranks = {"layout.dp=2", "job.lanes.dp=128"};

struct Leaf {
  std::vector<std::pair<crash::CellId, crash::ValueIndex>> assignment;
  std::string answer;
};

std::string text_of(const CheckAnswer& answer) {
  return fmt::format("{} {} {} {} {}", answer.restored, answer.fresh, answer.golden,
                     answer.found ? to_string(*answer.found) : "nothing", answer.trouble);
}

// Whether a state with every reachable cell assigned is one of those that a leaf stands for.
bool covers(const crash::CrashSpace& space, const Leaf& leaf, const crash::Partial& state) {
  for (const auto& [cell, value] : leaf.assignment) {
    if (space.cell(cell).kind == crash::CellKind::size) {
      const crash::CellId content = space.content_cell(space.cell(cell).inode);
      const auto held = state.value(content);
      if (!held || space.cell(content).values[*held].size != space.cell(cell).values[value].size) return false;
    } else if (state.value(cell) != value) {
      return false;
    }
  }
  return true;
}

// Each explicit state must fall on exactly one lazy leaf, and have its answer.
void engines_agree(const ExploreSubject& subject, const CrashCase& one, crash::ProfileKind profile, int jobs) {
  const auto space = space_of(one, profile);
  const CheckSubject check = subject.to_check(one.attempts + 1);
  std::vector<Leaf> leaves;
  std::mutex mutex;
  const auto keep = [&](crash::Partial& partial, const CheckAnswer& answer) {
    Leaf leaf{.assignment = {}, .answer = text_of(answer)};
    for (std::size_t i = 0; i < partial.depth(); ++i) leaf.assignment.push_back(partial.assignment(i));
    const std::scoped_lock lock(mutex);
    leaves.push_back(std::move(leaf));
  };
  const Exploration lazy = explore_lazily(*space, check, {.jobs = jobs, .required = one.required, .on_leaf = keep});
  ASSERT_TRUE(lazy.complete);
  EXPECT_EQ(lazy.violations, 0U);
  EXPECT_EQ(leaves.size(), lazy.leaves());
  std::uint64_t astray = 0;
  const auto find = [&](crash::Partial& partial, const CheckAnswer& answer) {
    std::size_t found = 0;
    for (const Leaf& leaf : leaves) {
      if (covers(*space, leaf, partial)) found += leaf.answer == text_of(answer) ? 1 : 1000;
    }
    const std::scoped_lock lock(mutex);
    if (found != 1) ++astray;
  };
  const Exploration explicitly =
      explore_explicitly(*space, check, {.jobs = jobs, .required = one.required, .on_leaf = find});
  ASSERT_TRUE(explicitly.complete);
  EXPECT_EQ(astray, 0U);
  EXPECT_EQ(explicitly.covered, crash::Counter(*space).count_all());
  EXPECT_EQ(lazy.covered, explicitly.covered);
}

TEST(Engines, EachExplicitStateOfTwoRanksFallsOnOneLazyLeafWithTheSameAnswer) {
  const auto subject = subject_of("one_publish", two_ranks);
  const auto cases = recorded(*subject, spec_of("one_publish"));
  for (const auto profile : {crash::ProfileKind::posix, crash::ProfileKind::ext4, crash::ProfileKind::nfs}) {
    engines_agree(*subject, cases.front(), profile, 1);
  }
}

TEST(Engines, AgreeOnAFirstPublishFromAnEmptyDiskWithSeveralJobs) {
  const auto subject = subject_of("crash_first_publish", {"layout.dp=2"});
  const auto cases = recorded(*subject, spec_of("crash_first_publish"));
  engines_agree(*subject, cases.front(), crash::ProfileKind::posix, 2);
}

TEST(Engines, OnePublishHasTheContentsOfFortyThreeToTheFourthAndTheLazyEngineCoversThemAll) {
  const auto subject = subject_of("one_publish");
  const CrashCheckResult result = checked(*subject, spec_of("one_publish"), {.engine = EngineKind::lazy});
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.violations, 0U);
  // 43^4 while the shards are written; behind that the commit, the mark, and what they leave in tmp.
  EXPECT_GE(result.legal.to_double(), 3'418'801.0);
  EXPECT_LT(result.legal.to_double(), 3'418'900.0);
  EXPECT_EQ(result.covered, result.legal);
}

TEST(Engines, ARenameWithoutAtomicityLeavesAllThatAnAtomicOneLeavesAndOwesNoLess) {
  const auto subject = subject_of("crash_second_publish", {"layout.dp=2"});
  const auto cases = recorded(*subject, spec_of("crash_second_publish"));
  const CrashCase& one = cases.front();
  const auto apart = space_of(one);
  const auto atomic = crash::CrashSpace::build(one.trace, {.certain = one.certain});
  ASSERT_TRUE(atomic);
  EXPECT_TRUE(crash::Counter(**atomic).count_all() < crash::Counter(*apart).count_all());
  std::uint64_t illegal = 0;
  std::uint64_t owed_less = 0;
  const auto look = [&](crash::Partial& state, const CheckAnswer&) {
    crash::Partial same(*apart);
    for (std::size_t i = 0; i < state.depth(); ++i) {
      const auto [cell, value] = state.assignment(i);
      const auto there = same_in(**atomic, *apart, cell, value);
      if (!there || !same.assign(there->first, there->second)) ++illegal;
    }
    const auto owed = state.requirement();
    if (owed && (!same.requirement() || *same.requirement() < *owed)) ++owed_less;
  };
  const Exploration all = explore_explicitly(**atomic, subject->to_check(2), {.on_leaf = look});
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.violations, 0U);
  EXPECT_EQ(illegal, 0U);
  EXPECT_EQ(owed_less, 0U);
}

TEST(Engines, ALazyWalkThatGivesUpIsNotComplete) {
  const auto subject = subject_of("crash_first_publish");
  const auto cases = recorded(*subject, spec_of("crash_first_publish"));
  const auto space = space_of(cases.front());
  const Exploration cut = explore_lazily(*space, subject->to_check(2), {.runs_max = 5});
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.runs, 5U);
  EXPECT_TRUE(cut.covered < crash::Counter(*space).count_all());
}

// Writes all three shards before it syncs the first of them.
class SyncedAtLast final : public Protocol {
 protected:
  Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes) override {
    FileSystem& files = ctx.parts.files;
    FD_TRY(const auto file, files.create(path));
    FD_TRY_VOID(file->write(0, bytes));
    FD_TRY_VOID(file->close());
    written_.push_back(path);
    if (written_.size() < 3) return {};
    for (const std::string& each : written_) {
      FD_TRY(const auto again, files.open(each));
      FD_TRY_VOID(again->sync());
      FD_TRY_VOID(again->close());
    }
    written_.clear();
    return {};
  }

 private:
  std::vector<std::string> written_;
};

TEST(Engines, EightRanksWithoutASyncBetweenTheirShardsAreCoveredLazily) {
  const auto subject = subject_of("one_publish", {"layout.dp=8", "job.lanes.dp=512"});
  const auto run = record_run(*subject, subject->plan(), [] { return std::make_unique<SyncedAtLast>(); });
  ASSERT_TRUE(run && run->finished);
  const auto before = operations_before(run->trace, 1, 4);
  const CrashCase one{.trace = settled(run->trace, before), .certain = {}};
  const auto space = space_of(one);
  const crash::Count legal = crash::Counter(*space).count_all();
  const Exploration lazy = explore_lazily(*space, subject->to_check(2), {});
  EXPECT_TRUE(lazy.complete);
  EXPECT_EQ(lazy.violations, 0U);
  EXPECT_EQ(lazy.covered, legal);
  EXPECT_GE(legal.to_double(), 1e20);  // 343^8 = 1.9e20
  EXPECT_LT(lazy.seconds, 10.0);
}

TEST(Engines, ShardsWithoutASyncAreCaughtAndToldInWords) {
  const auto subject = subject_of("one_publish", {}, "protocol_unsynced_files");
  const CrashCheckResult result = checked(*subject, spec_of("one_publish"), {.stop_at_first = true});
  ASSERT_GT(result.violations, 0U);
  EXPECT_FALSE(result.complete);
  ASSERT_TRUE(result.story);
  EXPECT_GE(result.story->losses, 1U);
  EXPECT_THAT(result.story->what, HasSubstr("was acknowledged"));
  EXPECT_THAT(result.story->lines(), Contains(HasSubstr("rank 0's rename of tmp/4-1-1 to manifests/4-1-1")));
}

TEST(Engines, ADirectoryThatCountsByItsNameIsCaughtAtItsFirstOperation) {
  const auto subject = subject_of("one_publish", {}, "protocol_largest_directory");
  const CrashCheckResult result = checked(*subject, spec_of("one_publish"), {.engine = EngineKind::lazy});
  ASSERT_TRUE(result.story);
  ASSERT_EQ(result.story->operations.size(), 1U);
  EXPECT_EQ(result.story->operations.front().operation, "rank 0's make_directory of shards/4-1-1");
  EXPECT_EQ(result.story->operations.front().fate, "durable");
}

TEST(Engines, SamplesOfTheRightProtocolPassAndOfAWrongOneDoNot) {
  for (const std::string mutant : {"", "protocol_unsynced_files"}) {
    const auto subject = subject_of("one_publish", two_ranks, mutant);
    const auto cases = recorded(*subject, spec_of("one_publish"));
    const auto space = space_of(cases.front());
    const Sampling sampling = sample_states(*space, subject->to_check(2), {.required = cases.front().required},
                                            {.seconds = 2, .losses_max = 1});
    EXPECT_FALSE(sampling.exploration.complete);
    EXPECT_GT(sampling.exploration.restored, 100U);
    EXPECT_EQ(sampling.exploration.violations > 0, !mutant.empty()) << mutant;
    EXPECT_THAT(sampling.words, HasSubstr("every prefix of the"));
    EXPECT_THAT(sampling.words, HasSubstr("every single loss"));
  }
}

}  // namespace
}  // namespace firedrill
