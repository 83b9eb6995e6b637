#include "engine/sim/machine.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace firedrill::sim {
namespace {

using Main = std::function<void(const Seams&)>;

class MachineTest : public testing::Test {
 protected:
  MachineTest() { machine_.reset({}); }
  Attempt& start(int number, const std::vector<Main>& mains, int ranks_per_node = 1) {
    std::vector<int> nodes;
    for (std::size_t i = 0; i < mains.size(); ++i) nodes.push_back(static_cast<int>(i) / ranks_per_node);
    Attempt& attempt = machine_.start_attempt({.number = number, .node_of_rank = nodes});
    for (std::size_t i = 0; i < mains.size(); ++i) {
      const int rank = static_cast<int>(i);
      attempt.start(rank, [&attempt, rank, main = mains[i]] { main(attempt.seams(rank)); });
    }
    return attempt;
  }
  static void connect(const Seams& seams) {
    std::vector<std::string> addresses;
    const std::string mine = seams.transport.address();
    const std::string head = mine.substr(0, mine.rfind(':') + 1);
    for (int i = 0; i < seams.transport.world_size(); ++i) addresses.push_back(head + std::to_string(i));
    ASSERT_TRUE(seams.transport.connect(addresses, never));
  }
  static Value text(std::string_view words) { return Value::copy_of(words); }

  FiberPool pool_;
  Machine machine_{pool_};
  Attempt* attempt_ = nullptr;  // for mains that act on their own attempt
};

TEST_F(MachineTest, AfterItsKillEveryCallOfARankIsDeadAndWithoutEffect) {
  int changes = 0;
  machine_.disk().on_change = [&](const DiskChange&) { ++changes; };
  std::vector<Code> codes;
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                             connect(seams);
                             auto file = seams.files.create("a");
                             ASSERT_TRUE(file);
                             seams.host.kill_self();
                             const Time then = seams.clock.now();
                             const std::uint64_t switches = machine_.scheduler().switches();
                             const auto note = [&](const auto& result) { codes.push_back(result.error().code); };
                             note((*file)->write(0, text("x")));
                             note((*file)->sync());
                             note((*file)->read(0, 1));
                             note((*file)->size());
                             note((*file)->close());
                             note(seams.files.create("b"));
                             note(seams.files.open("a"));
                             note(seams.files.stat("a"));
                             note(seams.files.list(""));
                             note(seams.files.rename("a", "b"));
                             note(seams.files.remove("a"));
                             note(seams.files.make_directory("d"));
                             note(seams.files.sync_directory(""));
                             note(seams.files.free_space());
                             note(seams.transport.send(0, 1, text("x"), never));
                             note(seams.transport.recv(0, 1, never));
                             note(seams.store.set("k", "v"));
                             note(seams.store.get("k", never));
                             note(seams.store.add("k", 1));
                             note(seams.clock.sleep_until(Time{1'000'000'000}));
                             note(seams.host.spawn("task", [] {}));
                             note(seams.host.wait(1, never));
                             EXPECT_TRUE(seams.host.dead());
                             EXPECT_EQ(seams.clock.now(), then) << "the dead spend no time";
                             EXPECT_EQ(machine_.scheduler().switches(), switches) << "and do not yield";
                           }});
  EXPECT_TRUE(attempt.run());
  EXPECT_EQ(codes, std::vector<Code>(codes.size(), Code::dead));
  EXPECT_EQ(codes.size(), 22U);
  EXPECT_EQ(changes, 1) << "the create before the kill";
  EXPECT_EQ(attempt.end_of(0), RankEnd::died);
}

TEST_F(MachineTest, ComputeOfTheDeadIsDead) {
  DirectCompute direct;
  const Kernel kernel = make_kernel(
      "test.kernel", KernelKind::forward,
      [](std::span<const std::byte>, std::span<Value>) -> Result<Value> { return Value::copy_of("result"); });
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                             CostedCompute compute(direct, *attempt_, 0);
                             const Time before = seams.clock.now();
                             EXPECT_TRUE(compute.run(kernel, {}, {}));
                             EXPECT_EQ(seams.clock.now() - before, machine_.costs().kernel[0])
                                 << "compute is never scaled";
                             seams.host.kill_self();
                             EXPECT_TRUE(compute.run(kernel, {}, {}).failed_with(Code::dead));
                           }});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
}

TEST_F(MachineTest, PeersOfADeadRankAreToldAfterTheDetectionTime) {
  std::vector<Time> told(3);
  const auto waits_for_ever = [&](std::size_t index, auto wait) {
    return [&, index, wait](const Seams& seams) {
      connect(seams);
      EXPECT_TRUE(wait(seams).failed_with(Code::aborted));
      EXPECT_FALSE(seams.host.dead());
      told[index] = seams.clock.now();
    };
  };
  Time died{0};
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                                 connect(seams);
                                 ASSERT_TRUE(seams.clock.sleep_until(Time{5'000'000}));
                                 died = seams.clock.now();
                                 seams.host.kill_self();
                               },
                               waits_for_ever(0, [](const Seams& s) { return s.transport.recv(2, 1, never); }),
                               waits_for_ever(1, [](const Seams& s) { return s.store.get("never", never); }),
                               waits_for_ever(2, [](const Seams& s) { return s.host.wait(1, never); })});
  EXPECT_TRUE(attempt.run());
  for (const Time time : told) EXPECT_EQ(time, died + machine_.costs().failure_detection);
  EXPECT_EQ(attempt.end_of(0), RankEnd::died);
  EXPECT_EQ(attempt.end_of(1), RankEnd::finished);
}

TEST_F(MachineTest, AKilledRankIsWokenToDie) {
  Time ended{0};
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                                 EXPECT_TRUE(seams.clock.sleep_until(never - Time{1}).failed_with(Code::dead));
                                 ended = seams.clock.now();
                               },
                               [&](const Seams& seams) {
                                 ASSERT_TRUE(seams.clock.sleep_until(Time{1000}));
                                 attempt_->kill_rank(0);
                               }});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
  EXPECT_EQ(ended, Time{1000});
}

TEST_F(MachineTest, ANodeTakesItsRanksAlongAndAChooserWhatTheyHadNotSynced) {
  const auto writes = [&](const Seams& seams) {
    auto file = seams.files.create("rank" + std::to_string(seams.transport.rank()));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, text("x")));
    EXPECT_FALSE(seams.clock.sleep_until(Time{1'000'000'000}));
  };
  const auto kills = [&](const Seams& seams) {
    ASSERT_TRUE(seams.clock.sleep_until(Time{10'000'000}));
    attempt_->kill_node(0);
    machine_.disk().lose_unsynced(0, [](const UnsyncedItem&) { return true; });
  };
  Attempt& attempt = start(1, {writes, writes, writes, kills}, 2);
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
  EXPECT_EQ(attempt.end_of(0), RankEnd::died);
  EXPECT_EQ(attempt.end_of(1), RankEnd::died);
  EXPECT_EQ(attempt.end_of(2), RankEnd::finished);
  EXPECT_EQ(*machine_.disk().list(""), std::vector<std::string>{"rank2"});
}

TEST_F(MachineTest, AFencedAttemptIsRefusedWhileTheNextOneWorks) {
  std::vector<Code> codes;
  Attempt& behind = start(1, {[&](const Seams& seams) {
                            EXPECT_TRUE(seams.host.wait(1, never).failed_with(Code::fenced));
                            codes.push_back(seams.files.create("old").error().code);
                            codes.push_back(seams.store.set("k", "v").error().code);
                            codes.push_back(seams.transport.send(0, 1, text("x"), never).error().code);
                            codes.push_back(seams.clock.sleep_until(Time{100}).error().code);
                          }});
  Attempt& next = start(2, {[&](const Seams& seams) {
                          ASSERT_TRUE(seams.files.create("new"));
                          behind.fence();
                          EXPECT_FALSE(seams.store.get("k", seams.clock.now() + Time{1'000'000}))
                              << "each attempt has keys of its own";
                        }});
  EXPECT_TRUE(next.run());
  EXPECT_TRUE(behind.run());
  EXPECT_EQ(codes, std::vector<Code>(4, Code::fenced));
  EXPECT_EQ(*machine_.disk().list(""), std::vector<std::string>{"new"});
}

TEST_F(MachineTest, AnAddressOfAnotherAttemptIsRefused) {
  Attempt& attempt = start(2, {[&](const Seams& seams) {
                             EXPECT_TRUE(seams.transport.connect({"sim:1:0"}, never).failed_with(Code::mismatch));
                             EXPECT_TRUE(seams.transport.connect({"sim:2:0"}, never));
                           }});
  EXPECT_TRUE(attempt.run());
}

TEST_F(MachineTest, AbortEndsAllWaitsOfTheAttempt) {
  const auto waits = [&](const Seams& seams) {
    connect(seams);
    const auto got = seams.transport.recv(1 - seams.transport.rank(), 1, never);
    ASSERT_TRUE(got.failed_with(Code::aborted));
    EXPECT_EQ(got.error().message, "supervisor says so");
    EXPECT_TRUE(seams.store.get("k", never).failed_with(Code::aborted)) << "later ones too";
    EXPECT_TRUE(seams.files.stat("").ok()) << "the disk is no wait";
  };
  const auto aborts = [&](const Seams& seams) {
    ASSERT_TRUE(seams.clock.sleep_until(Time{1'000'000}));
    attempt_->abort({.code = Code::aborted, .message = "supervisor says so"});
  };
  Attempt& attempt = start(1, {waits, waits, aborts});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
}

TEST_F(MachineTest, AnAbortByAnotherTaskEndsTheWaitOfATransport) {
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                             connect(seams);
                             ASSERT_TRUE(seams.host.spawn("guard", [seams] {
                               EXPECT_TRUE(seams.clock.sleep_until(Time{5'000'000}));
                               seams.transport.abort({.code = Code::aborted, .message = "the guard says so"});
                             }));
                             const auto got = seams.transport.recv(0, 1, never);
                             ASSERT_TRUE(got.failed_with(Code::aborted));
                             EXPECT_EQ(got.error().message, "the guard says so");
                             EXPECT_EQ(seams.clock.now(), Time{5'000'000});
                             EXPECT_TRUE(seams.store.set("k", "v")) << "the store is another part";
                           }});
  const Status ended = attempt.run();
  EXPECT_TRUE(ended) << describe(ended.error());
}

TEST_F(MachineTest, ARankKilledInAKernelsTimeNeverRunsIt) {
  static bool ran = false;
  ran = false;
  DirectCompute direct;
  const Kernel kernel = make_kernel("test.kernel", KernelKind::backward,
                                    [](std::span<const std::byte>, std::span<Value>) -> Result<Value> {
                                      ran = true;
                                      return Value::copy_of("result");
                                    });
  Attempt& attempt = start(1, {[&](const Seams&) {
                                 CostedCompute compute(direct, *attempt_, 0);
                                 EXPECT_TRUE(compute.run(kernel, {}, {}).failed_with(Code::dead));
                               },
                               [&](const Seams& seams) {
                                 ASSERT_TRUE(seams.clock.sleep_until(Time{1000}));
                                 attempt_->kill_rank(0);
                               }});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
  EXPECT_FALSE(ran);
  EXPECT_EQ(machine_.now(), Time{1000});
}

TEST_F(MachineTest, ADeadlockIsAnErrorThatNamesWhoWaitsForWhatAndAllDie) {
  const auto waits = [&](const Seams& seams) {
    connect(seams);
    EXPECT_TRUE(seams.transport.recv(1 - seams.transport.rank(), 5, never).failed_with(Code::dead));
  };
  Attempt& attempt = start(1, {waits, waits});
  const Status ended = attempt.run();
  ASSERT_TRUE(ended.failed_with(Code::timeout));
  EXPECT_NE(ended.error().message.find("rank 1 main waits for a message from rank 0 with tag 5"), std::string::npos)
      << ended.error().message;
  EXPECT_EQ(attempt.end_of(0), RankEnd::died);
  EXPECT_EQ(machine_.scheduler().alive(), 0U);
}

TEST_F(MachineTest, AnExceptionOutOfAMainIsKeptAndPeersAreTold) {
  Attempt& attempt =
      start(1, {[&](const Seams& seams) {
                  ASSERT_TRUE(seams.clock.sleep_until(Time{100}));
                  throw std::runtime_error("check failed");
                },
                [&](const Seams& seams) { EXPECT_TRUE(seams.host.wait(1, never).failed_with(Code::aborted)); }});
  EXPECT_TRUE(attempt.run());
  EXPECT_EQ(attempt.end_of(0), RankEnd::threw);
  EXPECT_EQ(attempt.thrown_by(0), "check failed");
  EXPECT_EQ(attempt.end_of(1), RankEnd::finished);
}

TEST_F(MachineTest, TheTasksOfARankEndWithItsMain) {
  bool ended = false;
  std::vector<int> told;
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                             ASSERT_TRUE(seams.host.spawn("heartbeat", [&ended, seams] {
                               while (seams.clock.sleep_until(seams.clock.now() + Time{1000})) {
                               }
                               ended = true;
                             }));
                             ASSERT_TRUE(seams.clock.sleep_until(Time{10'500}));
                           }});
  attempt.on_rank_end = [&](int rank) { told.push_back(rank); };
  EXPECT_TRUE(attempt.run());
  EXPECT_TRUE(ended);
  EXPECT_EQ(told, std::vector<int>{0});
  EXPECT_EQ(attempt.end_of(0), RankEnd::finished);
  EXPECT_EQ(machine_.now(), Time{10'500});
}

TEST_F(MachineTest, WhatWasOnItsWayWhenTheSenderDiedStillArrives) {
  Attempt& attempt = start(1, {[&](const Seams& seams) {
                                 connect(seams);
                                 ASSERT_TRUE(seams.transport.send(1, 1, text("last"), never));
                                 seams.host.kill_self();
                               },
                               [&](const Seams& seams) {
                                 connect(seams);
                                 auto got = seams.transport.recv(0, 1, never);
                                 ASSERT_TRUE(got);
                                 EXPECT_EQ(got->text(), "last");
                                 EXPECT_TRUE(seams.transport.recv(0, 1, never).failed_with(Code::aborted));
                               }});
  EXPECT_TRUE(attempt.run());
}

TEST_F(MachineTest, LinksBetweenNodesAreSlowerAndBytesTakeTime) {
  std::vector<Duration> took;
  const auto sends = [&](const Seams& seams) {
    connect(seams);
    ASSERT_TRUE(seams.clock.sleep_until(Time{1'000'000}));
    ASSERT_TRUE(seams.transport.send(1, 1, text("x"), never));
    ASSERT_TRUE(seams.transport.send(2, 1, text("x"), never));
    ASSERT_TRUE(seams.transport.send(2, 1, Value::copy_of(std::string(1'000'000, 'x')), never));
    ASSERT_TRUE(seams.clock.sleep_until(Time{9'000'000}));
  };
  const auto receives = [&](const Seams& seams) {
    connect(seams);
    ASSERT_TRUE(seams.transport.recv(0, 1, never));
    took.push_back(seams.clock.now() - Time{1'000'000});
    if (seams.transport.rank() == 2) {
      ASSERT_TRUE(seams.transport.recv(0, 1, never));
      took.push_back(seams.clock.now() - Time{1'000'000});
    }
  };
  Attempt& attempt = start(1, {sends, receives, receives}, 2);
  EXPECT_TRUE(attempt.run());
  const CostTable& costs = machine_.costs();
  EXPECT_EQ(took[0], costs.send + costs.latency_in_node);
  EXPECT_EQ(took[1], costs.send * 2 + costs.latency_between_nodes);
  EXPECT_EQ(took[2], costs.send * 3 + costs.latency_between_nodes + Duration{40'000});
}

// Ranks that work on the disk and with each other; the trace is all they saw.
std::string trace_of(Machine& machine, std::uint64_t seed, bool plain = false) {
  machine.reset({.schedule = {.seed = seed, .plain = plain}, .costs = {}, .disk = {}});
  std::string trace;
  machine.disk().on_change = [&](const DiskChange& change) {
    trace += std::string(to_string(change.op)) + " " + std::string(change.path) + " " +
             std::to_string(machine.now().count()) + "\n";
  };
  Attempt& attempt = machine.start_attempt({.number = 1, .node_of_rank = {0, 0, 1, 1}});
  for (int rank = 0; rank < 4; ++rank) {
    attempt.start(rank, [&attempt, rank, &trace] {
      const Seams seams = attempt.seams(rank);
      std::vector<std::string> addresses;
      for (int i = 0; i < 4; ++i) addresses.push_back("sim:1:" + std::to_string(i));
      if (!seams.transport.connect(addresses, never)) return;
      for (int step = 0; step < 10; ++step) {
        const std::string name = std::to_string(rank) + "-" + std::to_string(step);
        if (auto file = seams.files.create(name)) (void)(*file)->write(0, Value::copy_of(name));
        (void)seams.transport.send((rank + 1) % 4, 1, Value::copy_of(name), never);
        auto got = seams.transport.recv((rank + 3) % 4, 1, never);
        trace += got ? std::string(got->text()) + "\n" : "gone\n";
        if (step == 7 && rank == 2) seams.host.kill_self();
      }
    });
  }
  EXPECT_TRUE(attempt.run());
  return trace;
}

TEST_F(MachineTest, ATrialIsAFunctionOfItsSeedWhateverRanBefore) {
  const std::string one = trace_of(machine_, 1);
  const std::string two = trace_of(machine_, 2);
  EXPECT_NE(one, two);
  EXPECT_EQ(trace_of(machine_, 1), one);
  FiberPool pool;
  Machine fresh(pool);
  EXPECT_EQ(trace_of(fresh, 1), one);
  EXPECT_EQ(trace_of(fresh, 1, true), trace_of(machine_, 2, true)) << "plain knows no seed";
}

}  // namespace
}  // namespace firedrill::sim
