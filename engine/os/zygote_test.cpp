#include "engine/os/zygote.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "engine/os/channel_peer.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<ZygoteLauncher> make_launcher() {
  auto launcher = ZygoteLauncher::start_zygote();
  if (!launcher) ADD_FAILURE() << describe(launcher.error());
  return launcher ? std::move(*launcher) : nullptr;
}

RankProcess start(Launcher& launcher, int rank, const std::string& order, int attempt = 1) {
  auto process = launcher.start(RankStart{.rank = rank, .attempt = attempt, .payload = order});
  if (!process) ADD_FAILURE() << describe(process.error());
  return process ? std::move(*process) : RankProcess{};
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

TEST(ZygoteLauncher, ExitCodesAndSignalsOfRanksAreSeen) {
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher);
  RankProcess well = start(*launcher, 0, "exit 0");
  RankProcess failed = start(*launcher, 1, "exit 3");
  RankProcess thrown = start(*launcher, 2, "throw");
  RankProcess hanging = start(*launcher, 3, "hang");
  EXPECT_EQ(launcher->reap(well, seconds(10))->code, 0);
  EXPECT_EQ(launcher->reap(failed, seconds(10))->code, 3);
  EXPECT_EQ(launcher->reap(thrown, seconds(10))->code, 70);
  EXPECT_TRUE(launcher->reap(hanging, milliseconds(50)).failed_with(Code::timeout));
  ASSERT_TRUE(launcher->signal(hanging, SIGKILL));
  const auto killed = launcher->reap(hanging, seconds(10));
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->signal, SIGKILL);
}

TEST(ZygoteLauncher, RanksAreSingleThreadedChildrenOfTheSupervisorInOneGroupPerAttempt) {
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher);
  RankProcess threads = start(*launcher, 0, "threads", 1);
  EXPECT_EQ(launcher->reap(threads, seconds(10))->code, 1);
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(start(*launcher, rank, "hang", 2 + rank / 2));
  EXPECT_EQ(::getpgid(ranks[0].pid), ranks[0].pid);
  EXPECT_EQ(::getpgid(ranks[1].pid), ranks[0].pid);
  EXPECT_EQ(::getpgid(ranks[2].pid), ranks[2].pid);
  EXPECT_EQ(::getpgid(ranks[3].pid), ranks[2].pid);
}

TEST(ZygoteLauncher, ItsEndLeavesNoProcessBehind) {
  std::vector<pid_t> pids;
  {
    const auto launcher = make_launcher();
    ASSERT_TRUE(launcher);
    for (int rank = 0; rank < 4; ++rank) pids.push_back(start(*launcher, rank, "hang").pid);
    for (const pid_t pid : pids) EXPECT_TRUE(exists(pid));
  }
  for (const pid_t pid : pids) EXPECT_FALSE(exists(pid));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left, the zygote included";
}

TEST(ZygoteLauncher, WhatARankLeftBehindDiesWithTheLastOfItsAttempt) {
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher);
  RankProcess rank = start(*launcher, 0, "child");
  const pid_t group = rank.pid;
  ASSERT_TRUE(launcher->reap(rank, seconds(10)));
  EXPECT_NE(::kill(-group, 0), 0) << "its group is empty";
}

struct Heard final : ChannelListener {
  void on_event(int rank, const Event& event, std::string_view name, std::string_view, bool asked) override {
    events.push_back(fmt::format("{} {} {} {}", rank, to_string(event.kind), event.step, name));
    times.push_back(event.time);
    asks += asked ? 1 : 0;
  }
  void on_state(int, const Digest&, std::span<const NamedDigest>) override {}
  void on_heartbeat(int, std::uint64_t count, const PulseReading& reading) override {
    beats = count;
    pulse = reading;
  }
  void on_outcome(int, const RankOutcome& outcome) override { outcomes.push_back(outcome); }
  std::uint64_t beats = 0;
  PulseReading pulse;
  std::vector<std::string> events;
  std::vector<Time> times;
  std::vector<RankOutcome> outcomes;
  int asks = 0;
};

// Receives until `enough` or ten seconds have passed.
template <class Enough>
bool receive_until(ChannelPeer& peer, Enough enough) {
  const auto until = std::chrono::steady_clock::now() + seconds(10);
  while (!enough() && std::chrono::steady_clock::now() < until) {
    if (!peer.receive()) return enough();
    std::this_thread::sleep_for(milliseconds(1));
  }
  return enough();
}

TEST(ZygoteLauncher, RanksDieWithTheirSupervisor) {
  // What a dead supervisor leaves behind falls to this process.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  // A supervisor of its own, which dies without a word and leaves the rank's pid in the pipe.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    const auto launcher = make_launcher();
    const auto started = launcher->start(RankStart{.rank = 0, .attempt = 1, .payload = "hang"});
    if (!started) ::_exit(1);
    if (::write(ends[1], &started->pid, sizeof(started->pid)) < 0) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t rank = 0;
  ASSERT_EQ(::read(ends[0], &rank, sizeof(rank)), static_cast<ssize_t>(sizeof(rank)));
  ASSERT_EQ(::waitpid(supervisor, nullptr, 0), supervisor);
  int status = 0;
  ASSERT_EQ(::waitpid(rank, &status, 0), rank);
  // By the signal; or by its own look at who its parent is, if the supervisor died before the signal was asked for. A
  // rank that outlives it hangs here for ever.
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) != 0);
  while (::waitpid(-1, nullptr, 0) > 0) {  // its zygote
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

// As a terminal sends it, and as early as it can: the program of the zygote has not begun yet.
TEST(ZygoteLauncher, AnInterruptOfTheWholeGroupIsForTheSupervisorAlone) {
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::setpgid(0, 0);
    ::signal(SIGINT, [](int) {});
    const auto launcher = make_launcher();
    ::kill(0, SIGINT);
    const auto started = launcher->start(RankStart{.rank = 0, .attempt = 1, .payload = "hang"});
    ::_exit(started ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "its zygote has gone";
}

TEST(ZygoteLauncher, WhatAKilledRankSaidBeforeIsHeard) {
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher);
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  Heard heard;
  ChannelPeer peer(2, std::move(channel->first), heard);
  auto process =
      launcher->start(RankStart{.rank = 2, .attempt = 1, .payload = "kill", .channel = std::move(channel->second)});
  ASSERT_TRUE(process);
  ASSERT_TRUE(receive_until(peer, [&] { return heard.asks == 1; }));
  EXPECT_TRUE(launcher->reap(*process, milliseconds(50)).failed_with(Code::timeout)) << "it waits for the answer";
  peer.answer();
  EXPECT_EQ(launcher->reap(*process, seconds(10))->signal, SIGKILL);
  EXPECT_FALSE(peer.receive()) << "the line has ended";
  EXPECT_TRUE(peer.understood());
  EXPECT_EQ(heard.events, (std::vector<std::string>{"2 step_done 3 ", "2 fault_fired 0 kill rank at write"}));
  EXPECT_TRUE(heard.outcomes.empty());
}

TEST(ZygoteLauncher, ARankIsToldToAbortAndHasTheLastWord) {
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher);
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  Heard heard;
  ChannelPeer peer(0, std::move(channel->first), heard);
  auto process =
      launcher->start(RankStart{.rank = 0, .attempt = 1, .payload = "talk", .channel = std::move(channel->second)});
  ASSERT_TRUE(process);
  ASSERT_TRUE(receive_until(peer, [&] { return heard.events.size() == 1; }));
  peer.abort(Error{.code = Code::aborted, .message = "rank 2 died"});
  ASSERT_TRUE(receive_until(peer, [&] { return heard.outcomes.size() == 1; }));
  EXPECT_EQ(launcher->reap(*process, seconds(10))->code, 0);
  EXPECT_EQ(heard.outcomes[0].end, RankEnd::failed);
  EXPECT_EQ(heard.outcomes[0].error.message, "rank 2 died");
  EXPECT_TRUE(heard.outcomes[0].error.injected);
  EXPECT_EQ(heard.outcomes[0].payload, "last words");
}

}  // namespace
}  // namespace firedrill
