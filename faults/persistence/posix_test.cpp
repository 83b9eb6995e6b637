// Each rule of posix.cpp by the smallest trace that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_views.h"

namespace firedrill::crash {
namespace {

using testing::UnorderedElementsAre;

const ProfileOptions coarse = {.torn = false, .zeros = false};
const View nothing = {};

View file(const std::string& path, const std::string& runs) { return {{path, runs}}; }

TEST(Posix, ASyncOfAFileMakesItsDataAndSizeLast) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.write("a", 0, letters('A', 4));
  EXPECT_THAT(views_at_end(trace.trace(), coarse),
              UnorderedElementsAre(file("a", ""), file("a", "04"), file("a", "A4")));
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "A4")));
}

TEST(Posix, ASyncOfAFileDoesNotMakeItsNameLast) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.write("a", 0, letters('A', 4));
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(nothing, file("a", "A4")));
}

TEST(Posix, ASyncOfADirectoryMakesItsNamesLastAndNoData) {
  TraceBuilder trace;
  trace.base("d").rank(0);
  trace.create("d/a");
  trace.write("d/a", 0, letters('A', 4));
  trace.sync_directory("d");
  const auto with = [](const std::string& runs) { return View{{"d", "directory"}, {"d/a", runs}}; };
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(with(""), with("04"), with("A4")));
}

TEST(Posix, ADirectoryOfItsOwnSyncMayBeGone) {
  TraceBuilder trace;
  trace.rank(0);
  trace.make_directory("d");
  trace.create("d/a");
  trace.sync_directory("d");
  EXPECT_THAT(views_at_end(trace.trace(), coarse),
              UnorderedElementsAre(nothing, View{{"d", "directory"}, {"d/a", ""}}));
  trace.sync_directory("");
  EXPECT_EQ(views_at_end(trace.trace(), coarse).size(), 1);
}

TEST(Posix, ASyncCoversOnlyWhatHappenedBeforeIt) {
  TraceBuilder trace;
  trace.rank(0);
  const OperationId made = trace.create("a");
  trace.rank(1);
  trace.sync_directory("");
  EXPECT_EQ(views_at_end(trace.trace(), coarse).size(), 2);  // nothing says which of the two came first
  trace.after(made);
  trace.sync_directory("");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "")));
}

TEST(Posix, ASyncByOneNodeCoversWhatAnotherIssuedBefore) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0, 0);
  const OperationId write = trace.write("a", 0, letters('A', 4));
  trace.rank(1, 1).after(write);
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "A4")));
}

TEST(Posix, WithCachesPerNodeASyncCoversOnlyWhatItsOwnNodeIssued) {
  const ProfileOptions apart = {.node_caches = true, .torn = false, .zeros = false};
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0, 0);
  trace.write("a", 0, letters('B', 4));
  const OperationId made = trace.create("b");
  trace.rank(1, 1).after(made);
  trace.sync("a");
  trace.sync_directory("");
  EXPECT_EQ(views_at_end(trace.trace(), apart).size(), 4);
  EXPECT_EQ(views_at_end(trace.trace(), coarse).size(), 1);
  trace.rank(2, 0).after(made);  // another process of the first node
  trace.sync("a");
  trace.sync_directory("");
  EXPECT_EQ(views_at_end(trace.trace(), apart).size(), 1);
}

TEST(Posix, ARenameIsOneChangeOrTwo) {
  TraceBuilder trace;
  trace.base("t").base("m").base("t/a", letters('A', 4)).rank(0);
  trace.rename("t/a", "m/a");
  const View old_name = {{"t", "directory"}, {"m", "directory"}, {"t/a", "A4"}};
  const View new_name = {{"t", "directory"}, {"m", "directory"}, {"m/a", "A4"}};
  const View both = {{"t", "directory"}, {"m", "directory"}, {"t/a", "A4"}, {"m/a", "A4"}};
  const View neither = {{"t", "directory"}, {"m", "directory"}};
  const ProfileOptions tearing = {.atomic_rename = false, .torn = false, .zeros = false};
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(old_name, new_name));
  EXPECT_THAT(views_at_end(trace.trace(), tearing), UnorderedElementsAre(old_name, new_name, both, neither));
  trace.sync_directory("t");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(new_name));
  EXPECT_THAT(views_at_end(trace.trace(), tearing), UnorderedElementsAre(new_name, neither));
}

TEST(Posix, ARenameOverANameLeavesTheOldOrTheNewFile) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).base("b", letters('B', 4)).rank(0);
  trace.rename("a", "b");
  EXPECT_THAT(views_at_end(trace.trace(), coarse),
              UnorderedElementsAre(View{{"a", "A4"}, {"b", "B4"}}, View{{"b", "A4"}}));
}

TEST(Posix, ARenameToItsOwnNameChangesNothing) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.rename("a", "a");
  EXPECT_THAT(views(trace.trace(), coarse), UnorderedElementsAre(file("a", "A4")));
}

TEST(Posix, ADirectoryRenamedInTwoChangesSharesWhatIsInIt) {
  TraceBuilder trace;
  trace.base("d").base("d/a", Value::copy_of("")).rank(0);
  trace.write("d/a", 0, letters('A', 4));
  trace.rename("d", "e");
  int under_both = 0;
  for (const View& view : views_at_end(trace.trace(), {.atomic_rename = false, .torn = false})) {
    if (!view.contains("d") || !view.contains("e")) continue;
    ++under_both;
    EXPECT_EQ(view.at("d/a"), view.at("e/a"));
  }
  EXPECT_EQ(under_both, 3);  // empty, zeros, whole
}

TEST(Posix, ItemsThatWereNotSyncedAreIndependentOfEachOther) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.create("b");
  EXPECT_THAT(views_at_end(trace.trace(), coarse),
              UnorderedElementsAre(nothing, file("a", ""), file("b", ""), View{{"a", ""}, {"b", ""}}));
}

TEST(Posix, ALostSectorReadsAsBeforeOrAsZerosAndAloneWhereTorn) {
  TraceBuilder trace;
  trace.base("a", letters('A', 1024)).rank(0);
  trace.write("a", 0, letters('B', 1024));
  EXPECT_THAT(views_at_end(trace.trace(), {}),
              UnorderedElementsAre(file("a", "A1024"), file("a", "B1024"), file("a", "01024"), file("a", "A512 B512"),
                                   file("a", "B512 A512"), file("a", "0512 B512"), file("a", "B512 0512")));
}

TEST(Posix, AWriteInsideOneSectorIsNeverTorn) {
  TraceBuilder trace;
  trace.base("a", letters('A', 512)).rank(0);
  trace.write("a", 100, letters('B', 300));
  EXPECT_THAT(views_at_end(trace.trace(), {.zeros = false}),
              UnorderedElementsAre(file("a", "A512"), file("a", "A100 B300 A112")));
}

TEST(Posix, TheFirstTheMiddleAndTheLastSectorMayBeMissing) {
  TraceBuilder trace;
  trace.base("a", letters('A', 2560)).rank(0);
  trace.write("a", 0, letters('B', 2560));
  EXPECT_THAT(views_at_end(trace.trace(), {.zeros = false}),
              UnorderedElementsAre(file("a", "A2560"), file("a", "B2560"), file("a", "A512 B2048"),
                                   file("a", "B1024 A512 B1024"), file("a", "B2048 A512")));
}

TEST(Posix, ARemovedFileMayComeBackWithItsData) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.remove("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(nothing, file("a", "A4")));
  trace.sync_directory("");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(nothing));
}

TEST(Posix, ClosingPromisesNothing) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.write("a", 0, letters('A', 4));
  trace.close("a");
  EXPECT_EQ(views_at_end(trace.trace(), coarse).size(), 3);
}

TEST(Posix, AfterAFailedSyncLaterOnesPromiseNothingOfWhatWasPending) {
  TraceBuilder trace;
  trace.base("a", letters('0', 0)).rank(0);
  trace.write("a", 0, letters('A', 4));
  trace.failing().sync("a");
  trace.sync("a");
  EXPECT_EQ(views_at_end(trace.trace(), coarse).size(), 3);
  trace.write("a", 0, letters('B', 4));
  trace.sync("a");  // of the second write it promises all
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "B4"), file("a", "")));
}

TEST(Posix, AfterAFailedSyncOfADirectoryItsPendingNamesAreNeverPromised) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.failing().sync_directory("");
  trace.sync_directory("");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(nothing, file("a", "")));
}

TEST(Posix, AFailedWriteMayHaveLeftAnythingAndIsNeverPromised) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.failing(Code::no_space).write("a", 0, letters('B', 4));
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "A4"), file("a", "B4")));
}

TEST(Posix, ADeadNodesItemsAreDecidedAndThoseOfOthersStayPending) {
  TraceBuilder trace;
  trace.rank(0, 0);
  const OperationId lost = trace.create("a");
  const OperationId spared = trace.create("b");
  trace.rank(1, 1);
  const OperationId pending = trace.create("c");
  const OperationId death = trace.rank(-1, -1).after(lost).after(spared).after(pending).node_died(0, {{lost, false}});
  EXPECT_THAT(views(trace.trace(), coarse, {death}), UnorderedElementsAre(View{{"b", ""}}, View{{"b", ""}, {"c", ""}}));
  EXPECT_EQ(views(trace.trace(), coarse).size(), 8);  // before the death all is open
}

TEST(Posix, ADeadNodesLostWriteReadsAsBefore) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0, 0);
  const OperationId first = trace.write("a", 0, letters('B', 4));
  const OperationId second = trace.write("a", 4, letters('C', 4));
  const OperationId death = trace.rank(-1, -1).after(second).node_died(0, {{second, false}});
  EXPECT_LT(first, second);
  EXPECT_THAT(views(trace.trace(), coarse, {death}), UnorderedElementsAre(file("a", "B4")));
}

TEST(Posix, AWriteThatIsRepeatedAfterItFailedLastsWithItsSizeOnceItIsSynced) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.failing().write("a", 0, letters('A', 4));
  trace.write("a", 0, letters('A', 4));
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), coarse), UnorderedElementsAre(file("a", "A4")));
}

TEST(Posix, AShorterWriteBehindALongerOneThatFailedPromisesItsOwnSizeAndNoMore) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.failing().write("a", 0, letters('A', 8));
  trace.write("a", 0, letters('B', 4));
  trace.sync("a");
  const auto left = views_at_end(trace.trace(), coarse);
  EXPECT_THAT(left, testing::Contains(file("a", "B4")));
  EXPECT_THAT(left, testing::Contains(file("a", "B4 A4")));
  EXPECT_THAT(left, testing::Not(testing::Contains(file("a", ""))));
}

}  // namespace
}  // namespace firedrill::crash
