#include "engine/sim/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/check.h"

namespace firedrill::sim {
namespace {

struct Step {
  int fiber;
  std::int64_t time;
  bool operator==(const Step&) const = default;
};

// Four fibers that charge the same costs; who ran when.
std::vector<Step> trace_of(FiberPool& pool, const Schedule& schedule) {
  Scheduler scheduler(pool);
  scheduler.reset(schedule);
  std::vector<Step> trace;
  for (int i = 0; i < 4; ++i) {
    scheduler.spawn({.order = static_cast<std::uint64_t>(i), .rank = i}, [&, i] {
      for (int k = 0; k < 20; ++k) {
        scheduler.charge(Duration{1000});
        trace.push_back({i, scheduler.now().count()});
      }
    });
  }
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  return trace;
}

TEST(Scheduler, SameSeedGivesTheSameOrderAndOtherSeedsOthers) {
  FiberPool pool;
  const std::vector<Step> one = trace_of(pool, {.seed = 1});
  EXPECT_EQ(one.size(), 80U);
  EXPECT_EQ(trace_of(pool, {.seed = 1}), one);
  EXPECT_NE(trace_of(pool, {.seed = 2}), one);
  EXPECT_EQ(pool.size(), 4U) << "fibers are used again";
}

TEST(Scheduler, PlainIgnoresTheSeedAndBreaksTiesByRank) {
  FiberPool pool;
  const std::vector<Step> plain = trace_of(pool, {.seed = 1, .plain = true});
  EXPECT_EQ(plain, trace_of(pool, {.seed = 0}));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i], (Step{static_cast<int>(i % 4), static_cast<std::int64_t>(i / 4 + 1) * 1000}));
  }
}

TEST(Scheduler, TimeNeverGoesBackOverAllFibers) {
  FiberPool pool;
  std::int64_t last = 0;
  for (const Step& step : trace_of(pool, {.seed = 9})) {
    EXPECT_GE(step.time, last);
    last = step.time;
  }
}

// Fair: whatever the seed and the costs, no fiber that is ready at a time waits while others run at later ones, so none
// can be starved; and each comes to its end.
TEST(Scheduler, NoReadyFiberIsPassedOverByALaterTime) {
  FiberPool pool;
  EXPECT_TRUE(rc::check("fairness", [&pool] {
    const int fibers = *rc::gen::inRange(1, 9);
    const auto costs =
        *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(fibers), rc::gen::inRange(1, 5000));
    Scheduler scheduler(pool);
    scheduler.reset({.seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000)});
    std::vector<std::int64_t> due(static_cast<std::size_t>(fibers), 0);  // when each may go on
    std::vector<int> turns(static_cast<std::size_t>(fibers), 0);
    bool fair = true;
    for (std::size_t i = 0; i < due.size(); ++i) {
      scheduler.spawn({.order = i, .rank = static_cast<int>(i)}, [&, i] {
        for (int k = 0; k < 30; ++k) {
          const std::int64_t now = scheduler.now().count();
          for (std::size_t other = 0; other < due.size(); ++other)
            fair = fair && (turns[other] == 30 || due[other] >= now);
          due[i] = now + costs[i];
          ++turns[i];
          scheduler.charge_exactly(Duration{costs[i]});
        }
      });
    }
    RC_ASSERT(scheduler.run() == RunStop::idle);
    RC_ASSERT(fair);
    for (const int count : turns) RC_ASSERT(count == 30);
  }));
}

TEST(Scheduler, JitterStaysInItsBoundsAndReachesTheFarOnes) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({.seed = 4});
  bool far = false;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t cost = scheduler.jittered(Duration{1000}).count();
    EXPECT_TRUE((cost >= 500 && cost <= 4000) || cost == 16000) << cost;
    far = far || cost == 16000;
  }
  EXPECT_TRUE(far);
  EXPECT_EQ(scheduler.jittered(Duration{1}).count() >= 1, true);
}

TEST(Scheduler, AWokenFiberGoesOnAtTheGivenTime) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  std::string order;
  Fiber* sleeper = nullptr;
  scheduler.spawn({.order = 0}, [&] {
    sleeper = &scheduler.current();
    EXPECT_EQ(scheduler.block(never, {.what = "a wake"}), Woken::notified);
    EXPECT_EQ(scheduler.now(), Time{700});
    order += "slept ";
  });
  scheduler.spawn({.order = 1}, [&] {
    scheduler.charge(Duration{100});
    scheduler.wake(*sleeper, Time{900});
    scheduler.wake(*sleeper, Time{700});
    scheduler.wake(*sleeper, Time{800});
    scheduler.charge(Duration{500});
    order += "early ";
    scheduler.charge(Duration{500});
    order += "late";
  });
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  EXPECT_EQ(order, "early slept late");
}

TEST(Scheduler, AWaitExpiresUnlessTheWakeComesFirst) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  std::vector<std::pair<Woken, std::int64_t>> ends;
  std::vector<Fiber*> sleepers;
  for (std::uint64_t i = 0; i < 3; ++i) {
    scheduler.spawn({.order = i}, [&] {
      sleepers.push_back(&scheduler.current());
      const Woken why = scheduler.block(Time{1000}, {.what = "a wake"});
      ends.emplace_back(why, scheduler.now().count());
    });
  }
  scheduler.spawn({.order = 3}, [&] {
    scheduler.wake(*sleepers[0], Time{400});
    scheduler.wake(*sleepers[1], Time{1001});  // too late for its deadline
    scheduler.expire_at(*sleepers[2], Time{600});
  });
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  const std::vector<std::pair<Woken, std::int64_t>> expected = {
      {Woken::notified, 400}, {Woken::expired, 600}, {Woken::expired, 1000}};
  EXPECT_EQ(ends, expected);
}

TEST(Scheduler, ADeadlockIsToldWithWhoWaitsForWhat) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  std::vector<Fiber*> waiting;
  for (int rank = 0; rank < 2; ++rank) {
    scheduler.spawn({.order = static_cast<std::uint64_t>(rank), .rank = rank}, [&, rank] {
      waiting.push_back(&scheduler.current());
      scheduler.block(never, {.what = "rank {0} with tag {1}", .first = 1 - rank, .second = 7});
    });
  }
  EXPECT_EQ(scheduler.run(), RunStop::stuck);
  EXPECT_EQ(scheduler.describe_waiting(),
            "rank 0 main waits for rank 1 with tag 7; rank 1 main waits for rank 0 with tag 7");
  for (Fiber* fiber : waiting) scheduler.hasten(*fiber);
  EXPECT_EQ(scheduler.run(), RunStop::idle);
}

TEST(Scheduler, HastenCutsSpentTimeShort) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  Fiber* busy = nullptr;
  std::int64_t ended = -1;
  scheduler.spawn({.order = 0}, [&] {
    busy = &scheduler.current();
    scheduler.charge(Duration{1'000'000});
    ended = scheduler.now().count();
  });
  scheduler.spawn({.order = 1}, [&] {
    scheduler.charge(Duration{10});
    scheduler.hasten(*busy);
  });
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  EXPECT_EQ(ended, 10);
}

TEST(Scheduler, StopsAtTheLimitAndGoesOnFromThere) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  int steps = 0;
  scheduler.spawn({}, [&] {
    for (; steps < 10; ++steps) scheduler.charge(Duration{100});
  });
  EXPECT_EQ(scheduler.run(Time{450}), RunStop::limit);
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  EXPECT_EQ(steps, 10);
}

TEST(Scheduler, AFiberThatHandlesAnExceptionDoesNotYield) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({});
  std::string order;
  std::string message;
  scheduler.spawn({.order = 0}, [&] {
    try {
      throw std::runtime_error("first");
    } catch (const std::runtime_error&) {
      scheduler.charge(Duration{1000});  // would let the other one pass
      order += "a";
      try {
        scheduler.block(Time{5000}, {.what = "nothing"});
      } catch (const CheckFailure& failure) {
        message = failure.what();
      }
    }
    scheduler.charge(Duration{1000});
    order += "c";
  });
  scheduler.spawn({.order = 1}, [&] { order += "b"; });
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  EXPECT_EQ(order, "abc");
  EXPECT_NE(message.find("while it handles an exception"), std::string::npos) << message;
}

TEST(Scheduler, ExceptionsOfDifferentFibersDoNotMix) {
  FiberPool pool;
  Scheduler scheduler(pool);
  scheduler.reset({.seed = 3});
  int caught = 0;
  for (int i = 0; i < 8; ++i) {
    scheduler.spawn({.order = static_cast<std::uint64_t>(i)}, [&, i] {
      for (int k = 0; k < 50; ++k) {
        try {
          scheduler.charge(Duration{10});
          throw i * 100 + k;
        } catch (int number) {
          caught += number == i * 100 + k;
        }
      }
    });
  }
  EXPECT_EQ(scheduler.run(), RunStop::idle);
  EXPECT_EQ(caught, 400);
}

}  // namespace
}  // namespace firedrill::sim
