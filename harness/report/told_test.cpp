#include "harness/report/told.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/seam/file_system.h"
#include "harness/report/test_history.h"

namespace firedrill {
namespace {

using testing::ElementsAre;

TEST(Told, EachEventOfARunIsALineAndWhatOnlyCountsIsNone) {
  const SmallRun run;
  std::vector<std::string> lines;
  for (const Event& event : run.history.events()) {
    if (const auto told = told_of(run.history, event)) lines.push_back(line_of(event, *told));
  }
  EXPECT_THAT(lines, ElementsAre("    0.0 us  1                             ▶ attempt 1: 2 ranks, dp=2, floor 0",
                                 "    0.1 us  1  r0    step 1               + did the step",
                                 "    0.1 us  1  r0    step 1               ● acknowledged 1-1-1",
                                 "    0.2 us  1  r1    step 2 backward      ▼ kill rank 1 </script>",
                                 "    0.2 us  1  r1                         ✖ died",
                                 "    0.2 us  1                             ■ attempt 1 ended: rank 1 died",
                                 "    0.2 us  2                             ▶ attempt 2: 2 ranks, dp=2, floor 0",
                                 "    0.3 us  2  r0    step 1               ↺ restored 1-1-1",
                                 "    0.4 us  2  r0    step 2               + did the step",
                                 "    0.5 us  2                             ■ attempt 2 ended: the job finished",
                                 "    0.5 us  2                             ■ run ended: the job finished"));
}

class WordsOfAnEvent : public testing::Test {
 protected:
  std::string words(Event event, std::string_view name = "", std::string_view detail = "") {
    event.name = tables_.names.intern(name);
    event.detail = tables_.names.intern(detail);
    const auto told = told_of(history_, event);
    return told ? told->words : "(not told)";
  }
  Tables tables_;
  History history_{tables_};
};

TEST_F(WordsOfAnEvent, ARankEndsInOneOfFourWays) {
  EXPECT_EQ(words({.kind = EventKind::rank_ended, .a = 0}), "finished");
  EXPECT_EQ(words({.kind = EventKind::rank_ended, .a = 1}, "no space"), "failed: no space");
  EXPECT_EQ(words({.kind = EventKind::rank_ended, .a = 2}), "died");
  EXPECT_EQ(words({.kind = EventKind::rank_ended, .a = 3}, "x > 0"), "failed a check of its own: x > 0");
}

TEST_F(WordsOfAnEvent, AnOperationThatFailedSaysHow) {
  const auto rename = static_cast<std::int64_t>(FileOp::rename);
  EXPECT_EQ(words({.kind = EventKind::disk_changed, .a = rename}, "tmp/2", "manifests/2"),
            "rename tmp/2 to manifests/2");
  EXPECT_EQ(words({.kind = EventKind::disk_changed, .a = rename, .c = 1 + static_cast<int>(Code::no_space)}, "a", "b"),
            "rename a to b, failed: no_space");
}

TEST_F(WordsOfAnEvent, ReplicasAreEqualOrTheOddOneIsNamed) {
  EXPECT_EQ(words({.kind = EventKind::replicas_compared, .a = 4, .b = -1}, "moments"),
            "4 replicas of moments are equal");
  EXPECT_EQ(words({.kind = EventKind::replicas_compared, .a = 4, .b = 2}, "moments"),
            "of 4 replicas of moments that of rank 2 differs");
}

TEST_F(WordsOfAnEvent, ProbesAndTheGoldenAreNotTold) {
  EXPECT_EQ(words({.kind = EventKind::probe}), "(not told)");
  EXPECT_EQ(words({.kind = EventKind::golden}), "(not told)");
}

}  // namespace
}  // namespace firedrill
