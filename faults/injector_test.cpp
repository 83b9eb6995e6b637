#include "faults/injector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "faults/fake_world.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"

namespace firedrill {
namespace {

using Lines = std::vector<std::string>;
constexpr Time deadline = std::chrono::hours(1);

// One rank of an attempt with all its seams under faults.
struct Rank {
  Rank(std::vector<FaultSpec> faults, int attempt = 1, std::vector<int> fired = {})
      : plan(std::move(faults)),
        position{.attempt = attempt, .rank = 2, .step = 3, .phase = Phase::save},
        injector(plan, fired, position, world),
        inner_files(world.files.get()),
        files(*inner_files, injector),
        transport(inner_transport, injector),
        store(inner_store, injector),
        compute(inner_compute, injector),
        collectives(inner_collectives, injector) {}

  Result<Value> run_kernel() { return compute.run(Kernel{}, {}, {}); }

  std::vector<FaultSpec> plan;
  Position position;
  FakeWorld world;
  Injector injector;
  FileSystem* inner_files;
  CountingTransport inner_transport;
  CountingStore inner_store;
  CountingCompute inner_compute;
  CountingCollectives inner_collectives;
  FaultyFileSystem files;
  FaultyTransport transport;
  FaultyStore store;
  FaultyCompute compute;
  FaultyCollectives collectives;
};

FaultSpec on_file(FaultKind kind, FileOp op, When when = When::before) {
  return {.kind = kind, .at = {.rank = 2, .op = SeamOp::file, .file_op = op, .when = when}};
}

TEST(Injector, IsIdleWhereNoFaultCanHit) {
  const std::vector<FaultSpec> plan = {{.at = {.rank = 1}}, {.at = {.attempt = 2, .rank = 2}}};
  EXPECT_TRUE(Rank(plan).injector.idle());
  EXPECT_FALSE(Rank(plan, 2).injector.idle());
  EXPECT_TRUE(Rank(plan, 2, {0, 1}).injector.idle());
}

TEST(Injector, WatchesOnlyTheSeamsItsFaultsCanHit) {
  const Rank rank({on_file(FaultKind::kill, FileOp::write)});
  EXPECT_TRUE(rank.injector.watches(SeamOp::file));
  EXPECT_FALSE(rank.injector.watches(SeamOp::compute));
  const Rank any({{.at = {.rank = 2}}});
  for (int op = 0; op < seam_op_count; ++op) EXPECT_TRUE(any.injector.watches(static_cast<SeamOp>(op)));
  const Rank io({{.kind = FaultKind::io_error, .at = {.rank = 2}}});
  EXPECT_FALSE(io.injector.watches(SeamOp::send));
}

TEST(Kill, BeforeACallKeepsItFromTheSeam) {
  Rank rank({{.at = {.rank = 2, .step = 3, .phase = Phase::save, .op = SeamOp::compute, .nth = 2}}});
  EXPECT_TRUE(rank.run_kernel());
  const Result<Value> result = rank.run_kernel();
  ASSERT_TRUE(result.failed_with(Code::dead));
  EXPECT_TRUE(result.error().injected);
  EXPECT_EQ(rank.inner_compute.calls, 1);
  EXPECT_TRUE(rank.world.dead);
  EXPECT_EQ(rank.world.journaled, Lines{"0 at 1/3/save"});
  EXPECT_FALSE(rank.world.died_before_journal);
}

TEST(Kill, AfterACallLetsItTakeEffect) {
  Rank rank({on_file(FaultKind::kill, FileOp::create, When::after)});
  EXPECT_TRUE(rank.files.create("a").failed_with(Code::dead));
  EXPECT_TRUE(rank.world.dead);
  EXPECT_TRUE(rank.inner_files->stat("a")) << "the file was made before the rank died";
}

TEST(Kill, CanHitEverySeam) {
  const auto kill_at = [](SeamOp op) { return std::vector<FaultSpec>{{.at = {.rank = 2, .op = op}}}; };
  const Group group{.id = 1, .name = "g", .ranks = {2}, .lanes = {{0, 1}}, .me = 0};
  const Call call{.purpose = "p", .deadline = deadline};
  const Value value = Value::copy_of("v");
  Rank send(kill_at(SeamOp::send));
  EXPECT_TRUE(send.transport.recv(1, 1, deadline));
  EXPECT_TRUE(send.transport.send(1, 1, value, deadline).failed_with(Code::dead));
  EXPECT_EQ(send.inner_transport.sends, 0);
  Rank recv(kill_at(SeamOp::recv));
  EXPECT_TRUE(recv.transport.send(1, 1, value, deadline));
  EXPECT_TRUE(recv.transport.recv(1, 1, deadline).failed_with(Code::dead));
  EXPECT_EQ(recv.inner_transport.recvs, 0);
  EXPECT_TRUE(Rank(kill_at(SeamOp::store)).store.set("k", "v").failed_with(Code::dead));
  EXPECT_TRUE(Rank(kill_at(SeamOp::store)).store.get("k", deadline).failed_with(Code::dead));
  EXPECT_TRUE(Rank(kill_at(SeamOp::store)).store.add("k", 1).failed_with(Code::dead));
  EXPECT_TRUE(Rank(kill_at(SeamOp::compute)).run_kernel().failed_with(Code::dead));
  const auto collective = [&](auto run) {
    Rank rank(kill_at(SeamOp::collective));
    EXPECT_TRUE(run(rank.collectives).failed_with(Code::dead));
    EXPECT_EQ(rank.inner_collectives.calls, 0);
  };
  collective([&](Collectives& c) { return c.all_reduce(group, std::span(&value, 1), ReduceOp::sum, call); });
  collective([&](Collectives& c) { return c.reduce_scatter(group, std::span(&value, 1), ReduceOp::sum, call); });
  collective([&](Collectives& c) { return c.all_gather(group, value, call); });
  collective([&](Collectives& c) { return c.broadcast(group, value, 0, call); });
  collective([&](Collectives& c) { return c.barrier(group, call); });
  collective([&](Collectives& c) { return c.all_to_all(group, std::span(&value, 1), call); });
  collective([&](Collectives& c) { return c.send(group, 0, value, call); });
  collective([&](Collectives& c) { return c.recv(group, 0, call); });
}

TEST(Kill, CanHitEveryFileOperation) {
  for (int i = 0; i < file_op_count; ++i) {
    const auto op = static_cast<FileOp>(i);
    Rank rank({on_file(FaultKind::kill, op)});
    ASSERT_TRUE(rank.inner_files->make_directory("d"));
    ASSERT_TRUE(rank.inner_files->create("d/old"));
    const auto work = [](FileSystem& files) -> Status {
      FD_TRY_VOID(files.free_space());
      FD_TRY_VOID(files.make_directory("e"));
      FD_TRY(const auto file, files.create("d/new"));
      FD_TRY_VOID(file->write(0, Value::copy_of("text")));
      FD_TRY_VOID(file->sync());
      FD_TRY_VOID(file->close());
      FD_TRY_VOID(files.sync_directory("d"));
      FD_TRY_VOID(files.stat("d/new"));
      FD_TRY_VOID(files.drop_cache("d/new"));
      FD_TRY(const auto again, files.open("d/new"));
      FD_TRY_VOID(again->read(0, 4));
      FD_TRY_VOID(files.list("d"));
      FD_TRY_VOID(files.rename("d/new", "d/newer"));
      return files.remove("d/old");
    };
    EXPECT_TRUE(work(rank.files).failed_with(Code::dead)) << to_string(op);
    EXPECT_EQ(rank.world.journaled.size(), 1U) << to_string(op);
  }
}

TEST(Kill, OfARankThatDiedOtherwiseIsNeitherJournaledNorDone) {
  Rank after({{.at = {.rank = 2, .op = SeamOp::recv, .when = When::after}}});
  after.inner_transport.answer = Error{.code = Code::dead, .message = "killed while it waited"};
  EXPECT_TRUE(after.transport.recv(1, 1, deadline).failed_with(Code::dead));
  EXPECT_TRUE(after.world.journaled.empty());
  Rank before({on_file(FaultKind::io_error, FileOp::stat)});
  before.world.dead = true;
  EXPECT_FALSE(before.files.stat("").failed_with(Code::io_error));
  EXPECT_TRUE(before.world.journaled.empty());
}

TEST(KillNode, SaysWhatTheNodeLoses) {
  for (const bool data : {false, true}) {
    for (const bool names : {false, true}) {
      Rank rank({{.kind = FaultKind::kill_node,
                  .at = {.rank = 2},
                  .lose_unsynced_data = data,
                  .lose_unsynced_names = names}});
      EXPECT_TRUE(rank.files.list("").failed_with(Code::dead));
      EXPECT_EQ(rank.world.node_deaths,
                Lines{fmt::format("data {} names {}", data ? "lost" : "kept", names ? "lost" : "kept")});
    }
  }
}

TEST(IoError, BeforeLeavesTheDiskAsItWasAndAfterDoesNot) {
  for (const When when : {When::before, When::after}) {
    Rank rank({on_file(FaultKind::io_error, FileOp::make_directory, when)});
    const Status status = rank.files.make_directory("a");
    ASSERT_TRUE(status.failed_with(Code::io_error));
    EXPECT_TRUE(status.error().injected);
    EXPECT_NE(status.error().message.find("make_directory of a"), std::string::npos);
    EXPECT_EQ(rank.inner_files->stat("a").ok(), when == When::after);
    EXPECT_FALSE(rank.world.dead);
    EXPECT_TRUE(rank.files.make_directory("b")) << "it fires once";
  }
}

TEST(IoError, HitsFilesOpenedUnderFaults) {
  FaultSpec spec = on_file(FaultKind::io_error, FileOp::sync);
  spec.at.path = "shards/*";
  Rank rank({spec});
  ASSERT_TRUE(rank.files.make_directory("shards"));
  const auto other = rank.files.create("other");
  const auto shard = rank.files.create("shards/a");
  ASSERT_TRUE(other && shard);
  EXPECT_TRUE((*other)->sync());
  EXPECT_TRUE((*shard)->sync().failed_with(Code::io_error));
  EXPECT_TRUE((*shard)->sync());
}

TEST(IoError, HitsTheSizeOfAnOpenFileAsAStat) {
  FaultSpec spec = on_file(FaultKind::io_error, FileOp::stat);
  spec.at.path = "a";
  Rank rank({spec});
  ASSERT_TRUE(rank.inner_files->create("a"));
  const auto file = rank.files.open("a");
  ASSERT_TRUE(file);
  const Result<std::int64_t> size = (*file)->size();
  ASSERT_TRUE(size.failed_with(Code::io_error));
  EXPECT_NE(size.error().message.find("stat of a"), std::string::npos) << size.error().message;
  EXPECT_EQ(*(*file)->size(), 0) << "it fires once";
}

TEST(NoSpace, HitsWhatNeedsRoom) {
  FaultSpec spec{.kind = FaultKind::no_space, .at = {.rank = 2}, .times = 0};
  Rank rank({spec});
  ASSERT_TRUE(rank.inner_files->create("a"));
  EXPECT_TRUE(rank.files.list(""));
  EXPECT_TRUE(rank.files.open("a"));
  EXPECT_TRUE(rank.files.create("b").failed_with(Code::no_space));
  const Status made = rank.files.make_directory("d");
  ASSERT_TRUE(made.failed_with(Code::no_space));
  EXPECT_TRUE(made.error().injected);
  EXPECT_TRUE(rank.files.remove("a"));
}

TEST(Injector, TimesCountOverAttempts) {
  FaultSpec spec = on_file(FaultKind::kill, FileOp::list);
  spec.at.attempt = std::nullopt;
  spec.times = 2;
  EXPECT_TRUE(Rank({spec}, 1, {0}).files.list("").failed_with(Code::dead));
  EXPECT_TRUE(Rank({spec}, 2, {1}).files.list("").failed_with(Code::dead));
  EXPECT_TRUE(Rank({spec}, 3, {2}).files.list(""));
}

TEST(Injector, SeveralFaultsAtOneCallAllFireInPlanOrder) {
  Rank rank({on_file(FaultKind::io_error, FileOp::list), on_file(FaultKind::kill, FileOp::list, When::after),
             on_file(FaultKind::io_error, FileOp::stat)});
  EXPECT_TRUE(rank.files.list("").failed_with(Code::dead));
  EXPECT_EQ(rank.world.journaled, (Lines{"0 at 1/3/save", "1 at 1/3/save"}));
}

TEST(Injector, WhatCannotBeJournaledDoesNotHappen) {
  Rank rank({{.at = {.rank = 2, .op = SeamOp::compute}}});
  rank.world.fail_journal = true;
  EXPECT_TRUE(rank.run_kernel().failed_with(Code::fenced));
  EXPECT_FALSE(rank.world.dead);
}

}  // namespace
}  // namespace firedrill
