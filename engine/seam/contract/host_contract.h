// The contract of engine/seam/host.h (with the clock that its waits use) as a GoogleTest suite:
//
//   INSTANTIATE_TEST_SUITE_P(Sim, HostContract, testing::Values(HostSubject{"sim", run_sim_host}),
//                            [](const auto& info) { return info.param.name; });
//
// `run_host` runs the body once as the main of one rank and returns when it has ended. Killing is tested where a dead
// rank can be looked at: in the sim world by its own tests, in the process world by a child process.
// To be included by one source file of a test program.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/seam/clock.h"
#include "engine/seam/host.h"

namespace firedrill {

struct HostSubject {
  std::string name;
  std::function<void(const std::function<void(Host&, Clock&)>& body)> run_host;
  friend std::ostream& operator<<(std::ostream& out, const HostSubject& subject) { return out << subject.name; }
};

class HostContract : public testing::TestWithParam<HostSubject> {
 protected:
  static constexpr Duration patience = std::chrono::seconds(20);     // for what must come
  static constexpr Duration moment = std::chrono::milliseconds(50);  // for what must not

  void run(const std::function<void(Host&, Clock&)>& body) {
    bool ended = false;
    GetParam().run_host([&](Host& host, Clock& clock) {
      body(host, clock);
      ended = true;
    });
    EXPECT_TRUE(ended) << "the rank did not reach its end";
  }
};

TEST_P(HostContract, ANotifiedEventEndsTheWait) {
  run([](Host& host, Clock& clock) {
    int done = 0;
    ASSERT_TRUE(host.spawn("other", [&] {
      EXPECT_TRUE(clock.sleep_until(clock.now() + std::chrono::milliseconds(5)));
      done = 1;
      host.notify(3);
    }));
    const Status waited = host.wait(3, clock.now() + patience);
    ASSERT_TRUE(waited) << describe(waited.error());
    EXPECT_EQ(done, 1);
  });
}

TEST_P(HostContract, ANotifyBeforeTheWaitIsKeptOnce) {
  run([](Host& host, Clock& clock) {
    host.notify(1);
    host.notify(1);
    EXPECT_TRUE(host.wait(1, clock.now() + patience));
    EXPECT_TRUE(host.wait(1, clock.now() + moment).failed_with(Code::timeout));
  });
}

TEST_P(HostContract, WaitEndsAtItsDeadlineAndEventsAreApart) {
  run([](Host& host, Clock& clock) {
    host.notify(2);
    const Time deadline = clock.now() + moment;
    EXPECT_TRUE(host.wait(1, deadline).failed_with(Code::timeout));
    EXPECT_GE(clock.now(), deadline);
    EXPECT_TRUE(host.wait(2, clock.now() + patience));
  });
}

TEST_P(HostContract, TwoTasksHandWorkToEachOther) {
  run([](Host& host, Clock& clock) {
    std::vector<int> order;
    ASSERT_TRUE(host.spawn("pong", [&] {
      for (int i = 0; i < 10; ++i) {
        if (!host.wait(1, clock.now() + patience)) return;
        order.push_back(2 * i + 1);
        host.notify(2);
      }
    }));
    for (int i = 0; i < 10; ++i) {
      order.push_back(2 * i);
      host.notify(1);
      ASSERT_TRUE(host.wait(2, clock.now() + patience));
    }
    std::vector<int> expected(20);
    for (int i = 0; i < 20; ++i) expected[static_cast<std::size_t>(i)] = i;
    EXPECT_EQ(order, expected);
    EXPECT_FALSE(host.dead());
  });
}

}  // namespace firedrill
