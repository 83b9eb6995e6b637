// Each rule of nfs.cpp by the smallest trace that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_views.h"

namespace firedrill::crash {
namespace {

using testing::UnorderedElementsAre;

const ProfileOptions nfs = {.kind = ProfileKind::nfs, .torn = false, .zeros = false};
const View nothing = {};

View file(const std::string& path, const std::string& runs) { return {{path, runs}}; }

TEST(Nfs, ChangesOfNamesLastWithoutASync) {
  TraceBuilder trace;
  trace.base("old", letters('O', 4)).base("gone", letters('G', 4)).rank(0);
  trace.make_directory("d");
  trace.create("d/a");
  trace.rename("old", "new");
  trace.remove("gone");
  EXPECT_THAT(views_at_end(trace.trace(), nfs),
              UnorderedElementsAre(View{{"d", "directory"}, {"d/a", ""}, {"new", "O4"}}));
}

TEST(Nfs, AnOperationUnderWayHasHappenedOrNot) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  EXPECT_THAT(views(trace.trace(), nfs), UnorderedElementsAre(nothing, file("a", "")));
}

TEST(Nfs, SyncingADirectoryAddsNothing) {
  TraceBuilder trace;
  trace.rank(0);
  trace.create("a");
  trace.write("a", 0, letters('A', 4));
  const auto before = views_at_end(trace.trace(), nfs);
  trace.sync_directory("");
  EXPECT_EQ(views_at_end(trace.trace(), nfs), before);
}

TEST(Nfs, WritesStayOnTheClientUntilASyncOrAClose) {
  for (const bool by_close : {false, true}) {
    TraceBuilder trace;
    trace.base("a", Value::copy_of("")).rank(0);
    trace.write("a", 0, letters('A', 4));
    EXPECT_THAT(views_at_end(trace.trace(), nfs),
                UnorderedElementsAre(file("a", ""), file("a", "04"), file("a", "A4")));
    by_close ? trace.close("a") : trace.sync("a");
    EXPECT_THAT(views_at_end(trace.trace(), nfs), UnorderedElementsAre(file("a", "A4")));
  }
}

TEST(Nfs, AClientFlushesOnlyItsOwnWrites) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0, 0);
  const OperationId write = trace.write("a", 0, letters('B', 4));
  trace.rank(1, 1).after(write);
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), nfs), UnorderedElementsAre(file("a", "A4"), file("a", "B4")));
  trace.rank(2, 0).after(write);  // another process of the same node shares its cache
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), nfs), UnorderedElementsAre(file("a", "B4")));
}

TEST(Nfs, AFailedCloseLeavesWhatItWasToFlushUnpromised) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0);
  trace.write("a", 0, letters('B', 4));
  trace.failing().close("a");
  trace.sync("a");
  EXPECT_EQ(views_at_end(trace.trace(), nfs).size(), 2);
}

TEST(Nfs, AFailedSyncOfAnotherClientSaysNothing) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0, 0);
  const OperationId write = trace.write("a", 0, letters('B', 4));
  trace.rank(1, 1).after(write);
  const OperationId failed = trace.failing().sync("a");
  trace.rank(0, 0).after(failed);
  trace.sync("a");
  EXPECT_THAT(views_at_end(trace.trace(), nfs), UnorderedElementsAre(file("a", "B4")));
}

TEST(Nfs, ARenameReplacesInOneStep) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).base("b", letters('B', 4)).rank(0);
  trace.rename("a", "b");
  EXPECT_THAT(views(trace.trace(), {.kind = ProfileKind::nfs, .atomic_rename = false}),
              UnorderedElementsAre(View{{"a", "A4"}, {"b", "B4"}}, View{{"b", "A4"}}));
}

TEST(Nfs, AClientThatDiesTakesWhatItHadNotFlushed) {
  TraceBuilder trace;
  trace.base("a", letters('A', 4)).rank(0, 0);
  const OperationId write = trace.write("a", 0, letters('B', 4));
  const OperationId death = trace.rank(-1, -1).after(write).node_died(0, {{write, false}});
  EXPECT_THAT(views(trace.trace(), nfs, {death}), UnorderedElementsAre(file("a", "A4")));
}

// A disk that caches names lost a rename; the next attempt made one of its own, and that was lost, too.
TEST(Nfs, NamesThatADeathTookWereNotYetOnTheServer) {
  TraceBuilder trace;
  trace.base("log", letters('A', 4)).base("copy", letters('B', 4)).rank(0, 0);
  const OperationId lost = trace.rename("copy", "log");
  const View old = {{"copy", "B4"}, {"log", "A4"}};
  const OperationId death = trace.rank(-1, -1).after(lost).node_died(0, {{lost, false}, {lost, true}});
  EXPECT_THAT(views(trace.trace(), nfs, {death}), UnorderedElementsAre(old));
  const OperationId made = trace.rank(0, 0, 2).after(death).create("new");
  const OperationId again = trace.rename("new", "log");
  const View renamed = {{"copy", "B4"}, {"log", ""}};
  EXPECT_THAT(views_at_end(trace.trace(), nfs), UnorderedElementsAre(renamed));
  const View both = {{"copy", "B4"}, {"log", "A4"}, {"new", ""}};
  EXPECT_THAT(views(trace.trace(), nfs, {death}), UnorderedElementsAre(old, both, renamed));
  const OperationId second = trace.rank(-1, -1).after(again).node_died(0, {{again, false}, {again, true}});
  EXPECT_THAT(views(trace.trace(), nfs, {second}), UnorderedElementsAre(both)) << "the making of " << made << " stays";
}

}  // namespace
}  // namespace firedrill::crash
