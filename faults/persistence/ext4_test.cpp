// Each rule of ext4.cpp by the smallest trace that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_views.h"

namespace firedrill::crash {
namespace {

using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;

const ProfileOptions ext4 = {.kind = ProfileKind::ext4, .torn = false};
const ProfileOptions documented = {.kind = ProfileKind::ext4, .zeros = false, .replace_flushes = true};
const View nothing = {};

View file(const std::string& path, const std::string& runs) { return {{path, runs}}; }

TEST(Ext4, NamesLastInTheOrderOfTheirChanges) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.create("b");
  EXPECT_THAT(views_at_end(trace.trace(), ext4),
              UnorderedElementsAre(nothing, file("a", ""), View{{"a", ""}, {"b", ""}}));
}

TEST(Ext4, NamesOfRanksThatDoNotTalkHaveNoOrder) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.rank(1);
  trace.create("b");
  EXPECT_EQ(views_at_end(trace.trace(), ext4).size(), 4);
}

TEST(Ext4, DataInPlaceMayOutrunNamesThatWereMadeBefore) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.create("b");
  trace.write("a", 0, letters('B', 4));
  EXPECT_THAT(views_at_end(trace.trace(), ext4), Contains(file("a", "B4")));
}

TEST(Ext4, ARenameIsOneChange) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.rename("a", "b");
  EXPECT_THAT(views_at_end(trace.trace(), {.kind = ProfileKind::ext4, .atomic_rename = false}),
              UnorderedElementsAre(file("a", "A4"), file("b", "A4")));
}

TEST(Ext4, ANamedFileMayStayEmptyWhileLaterNamesLast) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.write("a", 0, letters('A', 4));
  trace.create("b");
  EXPECT_THAT(views_at_end(trace.trace(), ext4), Contains(View{{"a", ""}, {"b", ""}}));
}

TEST(Ext4, ASizeBringsTheNamesBeforeItWithIt) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.create("b");
  trace.write("a", 0, letters('A', 4));
  EXPECT_THAT(views_at_end(trace.trace(), documented),
              UnorderedElementsAre(file("a", ""), View{{"a", ""}, {"b", ""}}, View{{"a", "A4"}, {"b", ""}}));
}

TEST(Ext4, AFileWithItsSizeHasItsDataOrZeros) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.write("a", 0, letters('A', 4));
  EXPECT_THAT(views_at_end(trace.trace(), documented), UnorderedElementsAre(file("a", ""), file("a", "A4")));
  EXPECT_THAT(views_at_end(trace.trace(), ext4), UnorderedElementsAre(file("a", ""), file("a", "A4"), file("a", "04")));
}

TEST(Ext4, WhatIsOverwrittenIsOldOrNewAndNeverZeros) {
  TraceBuilder trace;
  trace.base("a", letters('A', 1024)).rank(0);
  trace.write("a", 0, letters('B', 1024));
  EXPECT_THAT(
      views_at_end(trace.trace(), {.kind = ProfileKind::ext4}),
      UnorderedElementsAre(file("a", "A1024"), file("a", "B1024"), file("a", "A512 B512"), file("a", "B512 A512")));
}

TEST(Ext4, ASyncOfAFileMakesItsNameLastAndAllNamesBeforeThat) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("before");
  trace.create("a");
  trace.create("behind");
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), ext4),
              UnorderedElementsAre(View{{"before", ""}, {"a", ""}}, View{{"before", ""}, {"a", ""}, {"behind", ""}}));
}

TEST(Ext4, ASyncOfAFileMakesItsRenameLast) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.rename("a", "b");
  trace.sync("b");
  EXPECT_THAT(views_at_end(trace.trace(), ext4), UnorderedElementsAre(file("b", "A4")));
}

TEST(Ext4, ASyncOfADirectoryMakesNamesInOtherDirectoriesLastAndNoData) {
  TraceBuilder trace;
  trace.base("d").rank(0);
  trace.create("a");
  trace.write("a", 0, letters('A', 4));
  trace.sync_directory("d");
  const auto with = [](const std::string& runs) { return View{{"d", "directory"}, {"a", runs}}; };
  EXPECT_THAT(views_at_end(trace.trace(), documented), UnorderedElementsAre(with(""), with("A4")));
}

TEST(Ext4, ARenameOverANameFlushesOnlyAsDocumented) {
  TraceBuilder trace;
  trace.base("latest", letters('L', 4)).rank(0);
  trace.create("new");
  trace.write("new", 0, letters('N', 4));
  trace.rename("new", "latest");
  EXPECT_THAT(views_at_end(trace.trace(), ext4), Contains(file("latest", "")));
  EXPECT_THAT(views_at_end(trace.trace(), documented), Not(Contains(file("latest", ""))));
  EXPECT_THAT(views_at_end(trace.trace(), documented), Contains(file("latest", "N4")));
}

TEST(Ext4, ARenameToANewNameFlushesNothing) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("new");
  trace.write("new", 0, letters('N', 4));
  trace.rename("new", "latest");
  EXPECT_THAT(views_at_end(trace.trace(), documented), Contains(file("latest", "")));
}

TEST(Ext4, ClosingFlushesNothing) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.write("a", 0, letters('A', 4));
  trace.close("a");
  EXPECT_THAT(views_at_end(trace.trace(), documented), Contains(file("a", "")));
}

TEST(Ext4, AfterAFailedSyncLaterOnesPromiseNothingOfWhatWasPending) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  trace.write("a", 0, letters('A', 4));
  trace.failing().sync("a");
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), documented), UnorderedElementsAre(file("a", ""), file("a", "A4")));
}

}  // namespace
}  // namespace firedrill::crash
