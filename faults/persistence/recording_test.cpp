// What the decorators record, on the disk and the machine of the sim world.
#include "faults/persistence/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "engine/sim/disk.h"
#include "engine/sim/machine.h"
#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_views.h"

namespace firedrill::crash {
namespace {

using testing::Contains;
using testing::ElementsAre;

View view_of(FileSystem& files) {
  View view;
  const Result<std::vector<BaseEntry>> base = read_base(files);
  FD_CHECK(base.ok(), "{}", base.error().message);
  for (const BaseEntry& entry : *base) {
    view[entry.path] = entry.kind == FileKind::directory ? "directory" : runs_of(entry.bytes);
  }
  return view;
}

std::vector<OperationId> all_of(const Trace& trace) {
  std::vector<OperationId> all(trace.operations.size());
  for (OperationId id = 0; id < all.size(); ++id) all[id] = id;
  return all;
}

// A rank that works on a disk, recorded.
struct Recorded {
  Recorded(Recorder& recorder, sim::Disk& disk, int rank, int node)
      : position{.attempt = 1, .rank = rank},
        inner(disk.files({.node = node, .rank = rank, .attempt = 1})),
        recorded(recorder, position, node),
        files(*inner, recorded) {}
  Position position;
  std::unique_ptr<FileSystem> inner;
  RankRecorder recorded;
  RecordingFileSystem files;
};

TEST(Recording, KeepsWhatChangesTheDiskOrPromisesSomething) {
  sim::Disk disk;
  Recorder recorder({});
  Recorded rank(recorder, disk, 0, 0);
  rank.position.step = 4;
  rank.position.phase = Phase::commit;
  {
    auto file = *rank.files.create("a");
    ASSERT_TRUE(file->write(0, letters('A', 4)).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(file->read(0, 4).ok());
    ASSERT_TRUE(file->close().ok());
  }
  ASSERT_TRUE(rank.files.rename("a", "b").ok());
  ASSERT_TRUE(rank.files.list("").ok());
  ASSERT_TRUE(rank.files.sync_directory("").ok());
  const Trace trace = recorder.trace();
  std::vector<std::string> words;
  for (OperationId id = 0; id < trace.operations.size(); ++id) words.push_back(describe(trace, id));
  EXPECT_THAT(words,
              ElementsAre("rank 0's create of a", "rank 0's write of 4 bytes at 0 of a", "rank 0's sync of a",
                          "rank 0's close of a", "rank 0's rename of a to b", "rank 0's sync_directory of the root"));
  EXPECT_EQ(trace.operations[4].inode, trace.operations[0].inode);
  EXPECT_EQ(trace.operations[4].step, 4);
  EXPECT_EQ(trace.operations[4].phase, Phase::commit);
}

TEST(Recording, NotesFailures) {
  sim::Disk disk;
  Recorder recorder({});
  Recorded rank(recorder, disk, 0, 0);
  ASSERT_TRUE(rank.files.make_directory("d").ok());
  EXPECT_FALSE(rank.files.make_directory("d").ok());
  EXPECT_EQ(recorder.trace().operations.at(1).error, Code::already_exists);
}

// Its syncs fail as if a fault stood before them; the first one has reached the disk all the same.
class FailingSyncs final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Status sync_directory(std::string_view directory) override {
    if (first_) FD_TRY_VOID(inner_.sync_directory(directory));
    first_ = false;
    return Error{.code = Code::io_error, .message = "no", .injected = true};
  }

 private:
  bool first_ = true;
};

TEST(Recording, ACallThatAFaultKeptFromTheDiskIsNotedAsAFailureAndOneThatReachedItOnlyOnce) {
  sim::Disk disk;
  Recorder recorder({});
  Recorded rank(recorder, disk, 0, 0);
  FailingSyncs faulty(rank.files);
  RecordingInjectedErrors files(faulty, rank.recorded);
  EXPECT_FALSE(files.sync_directory("").ok());
  EXPECT_FALSE(files.sync_directory("").ok());
  const Trace trace = recorder.trace();
  ASSERT_EQ(trace.operations.size(), 2U);
  EXPECT_FALSE(trace.operations[0].error);
  EXPECT_EQ(trace.operations[1].error, Code::io_error);
  EXPECT_EQ(trace.operations[1].op, FileOp::sync_directory);
}

TEST(Recording, AFileThatIsOpenedIsTheOneThatItsPathLedTo) {
  sim::Disk disk;
  Recorder recorder({});
  Recorded rank(recorder, disk, 0, 0);
  ASSERT_TRUE(rank.files.make_directory("d").ok());
  ASSERT_TRUE(rank.files.create("d/a").ok());
  ASSERT_TRUE(rank.files.rename("d", "e").ok());
  auto file = *rank.files.open("e/a");
  ASSERT_TRUE(file->sync().ok());
  const Trace trace = recorder.trace();
  EXPECT_EQ(trace.operations[3].op, FileOp::sync);
  EXPECT_EQ(trace.operations[3].inode, trace.operations[1].inode);
}

TEST(Recording, AMessageOrdersWhatItsSenderDidBeforeItAndItsReceiverBehindIt) {
  Recorder recorder({});
  const ProgramId a = recorder.program({.attempt = 1, .rank = 0});
  const ProgramId b = recorder.program({.attempt = 1, .rank = 1});
  const Position position;
  const auto make = [&](ProgramId program, const std::string& path) {
    Operation operation;
    operation.op = FileOp::create;
    operation.path = path;
    return recorder.record(program, position, std::move(operation));
  };
  const OperationId before = make(a, "before");
  recorder.send(1, 0, 1, 7, a);
  const OperationId behind = make(a, "behind");
  const OperationId early = make(b, "early");
  recorder.take(1, 0, 1, 7, b);
  const OperationId late = make(b, "late");
  const HappensBefore order(recorder.trace());
  EXPECT_TRUE(order.before(before, late));
  EXPECT_FALSE(order.before(before, early));
  EXPECT_FALSE(order.before(behind, late));
}

TEST(Recording, MessagesAreMatchedByPeerAndTagInTheirOrder) {
  Recorder recorder({});
  const ProgramId a = recorder.program({.attempt = 1, .rank = 0});
  const ProgramId b = recorder.program({.attempt = 1, .rank = 1});
  Operation operation;
  operation.op = FileOp::create;
  operation.path = "a";
  recorder.send(1, 0, 1, 7, a);
  const OperationId made = recorder.record(a, {}, operation);
  recorder.send(1, 0, 1, 7, a);
  recorder.send(1, 0, 1, 8, a);
  recorder.take(1, 0, 1, 7, b);
  operation.path = "b";
  const OperationId first = recorder.record(b, {}, operation);
  recorder.take(1, 0, 1, 7, b);
  operation.path = "c";
  const OperationId second = recorder.record(b, {}, operation);
  const HappensBefore order(recorder.trace());
  EXPECT_FALSE(order.before(made, first));
  EXPECT_TRUE(order.before(made, second));
}

TEST(Recording, AnAttemptComesAfterAllOfTheOneBefore) {
  Recorder recorder({});
  Operation operation;
  operation.op = FileOp::create;
  operation.path = "a";
  const OperationId old = recorder.record(recorder.program({.attempt = 1, .rank = 0}), {}, operation);
  recorder.attempt_started(2);
  operation.path = "b";
  const OperationId fresh = recorder.record(recorder.program({.attempt = 2, .rank = 1}), {}, operation);
  const Trace trace = recorder.trace();
  EXPECT_TRUE(HappensBefore(trace).before(old, fresh));
  EXPECT_THAT(operations_before_attempt(trace, 2), ElementsAre(old));
}

// Ranks of the sim world's machine: messages, a second task, acknowledgements.
TEST(Recording, FollowsMessagesAndTasksOfRanks) {
  sim::FiberPool pool;
  sim::Machine machine(pool);
  machine.reset({.schedule = {.seed = 1}, .costs = {}, .disk = {}});
  Recorder recorder({});
  sim::Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0, 1}});
  std::vector<std::unique_ptr<Position>> positions;
  std::vector<std::unique_ptr<RankRecorder>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    positions.push_back(std::make_unique<Position>(Position{.attempt = 1, .rank = rank}));
    ranks.push_back(std::make_unique<RankRecorder>(recorder, *positions.back(), rank, [&machine] {
      return machine.scheduler().current().name == "second" ? 1 : 0;
    }));
  }
  const Time deadline{std::chrono::seconds(1)};
  attempt.start(0, [&] {
    RecordingFileSystem files(attempt.seams(0).files, *ranks[0]);
    RecordingTransport transport(attempt.seams(0).transport, *ranks[0]);
    RecordingHost host(attempt.seams(0).host, *ranks[0]);
    ASSERT_TRUE(files.create("a").ok());
    bool done = false;
    ASSERT_TRUE(host.spawn("second",
                           [&] {
                             ASSERT_TRUE(files.create("b").ok());
                             host.notify(3);
                             done = true;
                           })
                    .ok());
    ASSERT_TRUE(host.wait(3, deadline).ok());
    ASSERT_TRUE(done);
    ASSERT_TRUE(transport.connect({"sim:1:0", "sim:1:1"}, deadline).ok());
    ASSERT_TRUE(transport.send(1, 7, Value::copy_of("go"), deadline).ok());
  });
  attempt.start(1, [&] {
    RecordingFileSystem files(attempt.seams(1).files, *ranks[1]);
    RecordingTransport transport(attempt.seams(1).transport, *ranks[1]);
    ASSERT_TRUE(transport.connect({"sim:1:0", "sim:1:1"}, deadline).ok());
    ASSERT_TRUE(transport.recv(0, 7, deadline).ok());
    ASSERT_TRUE(files.create("c").ok());
  });
  ASSERT_TRUE(attempt.run().ok());
  const Trace trace = recorder.trace();
  ASSERT_EQ(trace.operations.size(), 3) << describe(trace, 0) << describe(trace, 1);
  const HappensBefore order(trace);
  EXPECT_EQ(trace.programs[trace.operations[1].program].task, 1);
  EXPECT_TRUE(order.before(0, 1)) << "a task starts behind its spawn";
  EXPECT_TRUE(order.before(1, 2)) << "what the task did comes before what its rank sends once it was notified";
}

class Silent final : public Observer {
 public:
  void event(const Event& /*event*/) override { ++events; }
  NameId intern(std::string_view /*text*/) override { return 0; }
  bool knows_state(const Digest& /*state*/) override { return true; }
  void describe_state(const Digest& /*state*/, std::span<const NamedDigest> /*tensors*/) override {}
  int events = 0;
};

TEST(Recording, NotesAcknowledgementsAndCommits) {
  Recorder recorder({});
  const Position position{.attempt = 2, .rank = 1};
  RankRecorder rank(recorder, position, 0);
  Silent silent;
  RecordingObserver observer(silent, rank);
  emit(observer, position, {.kind = EventKind::committed, .step = 4, .a = 1});
  emit(observer, position, {.kind = EventKind::acknowledged, .step = 4, .a = 1, .digest = digest_of("state")});
  emit(observer, position, {.kind = EventKind::step_done, .step = 4});
  EXPECT_EQ(silent.events, 3);
  const Trace trace = recorder.trace();
  ASSERT_EQ(trace.operations.size(), 2);
  EXPECT_EQ(trace.operations[0].kind, OperationKind::committed);
  EXPECT_EQ(trace.operations[1].kind, OperationKind::acknowledged);
  EXPECT_EQ(to_string(trace.operations[1].checkpoint), "4-2-1");
  EXPECT_EQ(trace.operations[1].state, digest_of("state"));
}

// Random work of two ranks on two nodes, on the sim world's disk, one of which may die; then each keeps to its own
// names.
class Work {
 public:
  explicit Work(bool deaths)
      : recorder_({}), first_(recorder_, disk_, 0, 0), second_(recorder_, disk_, 1, 1), deaths_(deaths) {
    recorder_.number_by([this] { return disk_.operations(); });
    if (!deaths_) return;
    FD_CHECK(first_.files.make_directory("d").ok() && first_.files.sync_directory("").ok(), "no directory");
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const int rank = below(2);
      deaths_&& below(8) == 0 ? die(below(2)) : act((rank == 0 ? first_ : second_).files, rank);
    }
  }
  sim::Disk& disk() { return disk_; }
  const Recorder& recorder() const { return recorder_; }

 private:
  static int below(int n) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n)); }
  std::string path(int rank) const {
    const std::string name = *rc::gen::element<std::string>("a", "b", "d/a", "d/b");
    return deaths_ ? name + std::to_string(rank) : name;
  }
  void act(FileSystem& files, int rank) {
    const std::string at = path(rank);
    switch (below(7)) {
      case 0: (void)(deaths_ ? files.make_directory(at) : files.make_directory("d")); break;
      case 1:
        if (auto file = files.create(at); file && written_++ < 3) {
          (void)(*file)->write(0, letters(static_cast<char>('A' + written_), 600));
          if (below(2) == 0) (void)(*file)->sync();
        }
        break;
      case 2:
        if (const std::string to = path(rank); to != at) (void)files.rename(at, to);
        break;
      case 3: (void)files.remove(at); break;
      case 4:
        if (auto file = files.open(at)) (void)(*file)->sync();
        break;
      default: (void)files.sync_directory(below(2) == 0 ? "" : "d");
    }
  }
  void die(int node) {
    std::vector<UnsyncedItem> lost;
    disk_.lose_unsynced(node, [&](const UnsyncedItem& item) {
      const bool gone = below(2) == 0;
      if (gone) lost.push_back(item);
      return gone;
    });
    recorder_.node_died(node, lost);
  }

  sim::Disk disk_;
  Recorder recorder_;
  Recorded first_;
  Recorded second_;
  bool deaths_;
  int written_ = 0;
};

// Two independent pieces of code that must agree: the disk of the sim world keeps what is durable in the worst case,
// and what all see if nothing is lost; both are legal crash states of what was recorded on it.
void check_against_the_disk(bool deaths) {
  EXPECT_TRUE(rc::check("the sim world's disk", [&] {
    Work work(deaths);
    work.run(14);
    const Trace trace = work.recorder().trace();
    const std::set<View> legal =
        views(trace, {.atomic_rename = false, .node_caches = true, .torn = false, .zeros = false}, all_of(trace));
    const View worst = view_of(*work.disk().snapshot(sim::View::power_fails));
    const View best = view_of(*work.disk().snapshot(sim::View::processes_die));
    for (OperationId id = 0; id < trace.operations.size(); ++id) RC_LOG(describe(trace, id) + "\n");
    RC_ASSERT(legal.contains(worst));
    RC_ASSERT(legal.contains(best));
  }));
}

TEST(Recording, TheDisksWorstAndBestCaseAreLegalCrashStates) { check_against_the_disk(false); }

TEST(Recording, WhatANodesDeathLeavesOnTheDiskIsALegalCrashState) { check_against_the_disk(true); }

}  // namespace
}  // namespace firedrill::crash
