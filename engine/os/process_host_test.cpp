#include "engine/os/process_host.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <atomic>
#include <thread>

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SteadyClock, NeverGoesBackAndSleepsLongEnough) {
  AbortSignal abort;
  SteadyClock clock(Epoch::now(), abort);
  const Time before = clock.now();
  ASSERT_TRUE(clock.sleep_until(before + milliseconds(20)));
  EXPECT_GE(clock.now(), before + milliseconds(20));
  EXPECT_TRUE(clock.sleep_until(Time(0))) << "the past is no wait";
}

TEST(SteadyClock, AbortEndsAnEndlessSleepWithItsFirstReason) {
  AbortSignal abort;
  SteadyClock clock(Epoch::now(), abort);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(20));
    abort.raise(Error{.code = Code::io_error, .message = "first"});
    abort.raise(Error{.code = Code::aborted, .message = "second"});
  });
  const Status slept = clock.sleep_until(Time::max());
  other.join();
  ASSERT_FALSE(slept);
  EXPECT_EQ(slept.error().code, Code::aborted);
  EXPECT_EQ(slept.error().message, "first");
  EXPECT_TRUE(clock.sleep_until(clock.now() + seconds(10)).failed_with(Code::aborted)) << "later ones end at once";
}

TEST(ProcessHost, ANotificationBeforeTheWaitIsNotLost) {
  const Epoch epoch = Epoch::now();
  ProcessHost host(3, epoch);
  EXPECT_EQ(host.node(), 3);
  EXPECT_FALSE(host.dead());
  host.notify(7);
  host.notify(7);
  EXPECT_TRUE(host.wait(7, epoch.elapsed() + seconds(10)));
  EXPECT_TRUE(host.wait(7, epoch.elapsed() + milliseconds(10)).failed_with(Code::timeout)) << "it was used up";
}

TEST(ProcessHost, ATaskRunsBesideItsRankAndNotifiesIt) {
  const Epoch epoch = Epoch::now();
  ProcessHost host(0, epoch);
  int done = 0;
  ASSERT_TRUE(host.spawn("publish", [&] {
    done = 1;
    host.notify(1);
  }));
  ASSERT_TRUE(host.wait(1, epoch.elapsed() + seconds(10)));
  EXPECT_EQ(done, 1);
}

TEST(ProcessHost, JoinedTasksHaveEndedAndOthersMayFollow) {
  const Epoch epoch = Epoch::now();
  ProcessHost host(0, epoch);
  std::atomic<int> ended = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(host.spawn("publish", [&] { ++ended; }));
    host.join_tasks();
    EXPECT_EQ(ended, 8 * (round + 1));
  }
}

TEST(ProcessHost, AbortEndsTheWaitsOfAllTasks) {
  const Epoch epoch = Epoch::now();
  std::string code;
  {
    ProcessHost host(0, epoch);
    ASSERT_TRUE(host.spawn("heartbeat", [&] {
      const Status waited = host.wait(2, Time::max());
      code = waited ? "well" : std::string(to_string(waited.error().code));
    }));
    host.abort(Error{.code = Code::io_error, .message = "the attempt is over"});
    EXPECT_TRUE(host.wait(1, Time::max()).failed_with(Code::aborted));
  }
  EXPECT_EQ(code, "aborted");
}

TEST(ProcessHost, KillSelfIsASigkill) {
  EXPECT_EXIT(ProcessHost(0, Epoch::now()).kill_self(), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace firedrill
