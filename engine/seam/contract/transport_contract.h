// The contract of engine/seam/transport.h and store.h as a GoogleTest suite. Every implementation and every decorator
// runs it:
//
//   INSTANTIATE_TEST_SUITE_P(Sim, TransportContract, testing::Values(RanksSubject{"sim", run_sim_ranks}),
//                            [](const auto& info) { return info.param.name; });
//
// `run_ranks` runs the body once per rank, all at the same time, each with the seams of its rank in one fresh attempt,
// and returns when all have ended. Transports come unconnected. A body that returns ends its rank. Where ranks are
// fibers, gtest's scoped helpers (SCOPED_TRACE, ASSERT_NO_FATAL_FAILURE) must not span a seam call: they nest by
// thread. To be included by one source file of a test program.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/seam/clock.h"
#include "engine/seam/store.h"
#include "engine/seam/transport.h"

namespace firedrill {

using RankBody = std::function<void(int rank, Transport&, Store&, Clock&)>;

struct RanksSubject {
  std::string name;
  std::function<void(int ranks, const RankBody& body)> run_ranks;
  friend std::ostream& operator<<(std::ostream& out, const RanksSubject& subject) { return out << subject.name; }
};

class TransportContract : public testing::TestWithParam<RanksSubject> {
 protected:
  static constexpr Duration patience = std::chrono::seconds(20);     // for what must come
  static constexpr Duration moment = std::chrono::milliseconds(50);  // for what must not

  void run(int ranks, const RankBody& body) {
    std::vector<int> ended(static_cast<std::size_t>(ranks), 0);
    GetParam().run_ranks(ranks, [&](int rank, Transport& transport, Store& store, Clock& clock) {
      body(rank, transport, store, clock);
      ended[static_cast<std::size_t>(rank)] = 1;
    });
    EXPECT_EQ(ended, std::vector<int>(static_cast<std::size_t>(ranks), 1)) << "a rank did not reach its end";
  }
  // The same with transports that have met through the store.
  void run_connected(int ranks, const RankBody& body) {
    run(ranks, [&](int rank, Transport& transport, Store& store, Clock& clock) {
      ASSERT_EQ(transport.rank(), rank);
      ASSERT_EQ(transport.world_size(), ranks);
      ASSERT_TRUE(meet(transport, store, clock));
      body(rank, transport, store, clock);
    });
  }
  static testing::AssertionResult meet(Transport& transport, Store& store, Clock& clock) {
    const Time deadline = clock.now() + patience;
    if (Status set = store.set("address/" + std::to_string(transport.rank()), transport.address()); !set) {
      return testing::AssertionFailure() << describe(set.error());
    }
    std::vector<std::string> addresses;
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      auto address = store.get("address/" + std::to_string(peer), deadline);
      if (!address) return testing::AssertionFailure() << describe(address.error());
      addresses.push_back(*address);
    }
    if (Status connected = transport.connect(addresses, deadline); !connected) {
      return testing::AssertionFailure() << describe(connected.error());
    }
    return testing::AssertionSuccess();
  }
  // All ranks have come here.
  static void meet_again(const std::string& where, int ranks, Store& store, Clock& clock) {
    auto count = store.add("met/" + where, 1);
    ASSERT_TRUE(count);
    if (*count == ranks) {
      ASSERT_TRUE(store.set("all/" + where, "yes"));
    }
    ASSERT_TRUE(store.get("all/" + where, clock.now() + patience)) << "not all ranks came to " << where;
  }
};

TEST_P(TransportContract, ValuesArriveAsTheyWereSent) {
  run_connected(2, [](int rank, Transport& transport, Store&, Clock& clock) {
    const Time deadline = clock.now() + patience;
    const std::vector<float> numbers = {1.0F, -0.0F, 3.5F, 4.0F, 5.0F, 6.0F};
    const Value matrix = Value::copy_of(DType::f32, Shape{2, 3}, std::as_bytes(std::span(numbers)));
    const Value text = Value::copy_of("text");
    const Value pack = Value::pack({matrix, Value(), text});
    if (rank == 0) {
      for (const Value& value : {matrix, text, pack, Value::copy_of("")}) {
        ASSERT_TRUE(transport.send(1, 7, value, deadline));
      }
      ASSERT_TRUE(transport.recv(1, 8, deadline)) << "so that the rank does not end before its peer has all";
    } else {
      for (const Value& expected : {matrix, text, pack, Value::copy_of("")}) {
        auto got = transport.recv(0, 7, deadline);
        ASSERT_TRUE(got) << describe(got.error());
        EXPECT_TRUE(got->same_as(expected)) << "got a " << to_string(got->dtype());
      }
      ASSERT_TRUE(transport.send(0, 8, text, deadline));
    }
  });
}

TEST_P(TransportContract, MessagesOfOnePeerAndTagStayInOrder) {
  static constexpr int count = 50;
  run_connected(3, [](int rank, Transport& transport, Store& store, Clock& clock) {
    const Time deadline = clock.now() + patience;
    if (rank != 0) {
      for (std::int64_t i = 0; i < count; ++i) {
        // Long before short: the short one must not overtake.
        const std::vector<std::int64_t> words(i % 2 == 0 ? 20'000 : 1, i);
        ASSERT_TRUE(transport.send(0, static_cast<Tag>(i % 3), Value::copy_of(std::span(words)), deadline));
      }
    } else {
      for (const Tag tag : {Tag{2}, Tag{0}, Tag{1}}) {
        for (std::int64_t i = static_cast<std::int64_t>(tag); i < count; i += 3) {
          for (const int peer : {1, 2}) {
            auto got = transport.recv(peer, tag, deadline);
            ASSERT_TRUE(got) << describe(got.error());
            EXPECT_EQ(got->as<std::int64_t>()[0], i) << "from " << peer << " with tag " << tag;
          }
        }
      }
    }
    meet_again("end", 3, store, clock);
  });
}

TEST_P(TransportContract, AllRanksCanSendBeforeAnyReceives) {
  static constexpr int ranks = 4;
  run_connected(ranks, [](int rank, Transport& transport, Store& store, Clock& clock) {
    const Time deadline = clock.now() + patience;
    const std::vector<std::int64_t> words(200'000, rank);  // more than any socket buffer takes
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      ASSERT_TRUE(transport.send(peer, 1, Value::copy_of(std::span(words)), deadline));
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      auto got = transport.recv(peer, 1, deadline);
      ASSERT_TRUE(got) << describe(got.error());
      EXPECT_EQ(got->count(), 200'000);
      EXPECT_EQ(got->as<std::int64_t>()[199'999], peer);
    }
    meet_again("end", ranks, store, clock);
  });
}

TEST_P(TransportContract, RecvEndsAtItsDeadline) {
  run_connected(2, [](int rank, Transport& transport, Store& store, Clock& clock) {
    if (rank == 0) {
      const Time deadline = clock.now() + moment;
      EXPECT_TRUE(transport.recv(1, 1, deadline).failed_with(Code::timeout));
      EXPECT_GE(clock.now(), deadline);
    }
    meet_again("timeout", 2, store, clock);
    // The connection is as good as before.
    if (rank == 1) {
      ASSERT_TRUE(transport.send(0, 1, Value::copy_of("late"), clock.now() + patience));
    } else {
      auto got = transport.recv(1, 1, clock.now() + patience);
      ASSERT_TRUE(got) << describe(got.error());
      EXPECT_EQ(got->text(), "late");
    }
    meet_again("end", 2, store, clock);
  });
}

TEST_P(TransportContract, AbortEndsWaitsNowAndLater) {
  run_connected(2, [](int rank, Transport& transport, Store& store, Clock& clock) {
    if (rank == 0) {
      transport.abort({.code = Code::aborted, .message = "enough"});
      auto got = transport.recv(1, 1, clock.now() + patience);
      EXPECT_TRUE(got.failed_with(Code::aborted));
      EXPECT_TRUE(transport.send(1, 1, Value::copy_of("x"), clock.now() + patience).failed_with(Code::aborted));
    } else {
      // The peer's end is seen closed.
      EXPECT_TRUE(transport.recv(0, 1, clock.now() + patience).failed_with(Code::aborted));
    }
    meet_again("end", 2, store, clock);
  });
}

TEST_P(TransportContract, APeerThatEndedIsSeenAsAborted) {
  run_connected(2, [](int rank, Transport& transport, Store&, Clock& clock) {
    if (rank == 1) {
      ASSERT_TRUE(transport.send(0, 1, Value::copy_of("last words"), clock.now() + patience));
      return;
    }
    auto got = transport.recv(1, 1, clock.now() + patience);
    ASSERT_TRUE(got) << describe(got.error());
    EXPECT_EQ(got->text(), "last words");
    EXPECT_TRUE(transport.recv(1, 1, clock.now() + patience).failed_with(Code::aborted));
  });
}

TEST_P(TransportContract, StoreGetWaitsForTheKey) {
  run(2, [](int rank, Transport&, Store& store, Clock& clock) {
    if (rank == 0) {
      ASSERT_TRUE(clock.sleep_until(clock.now() + moment));
      ASSERT_TRUE(store.set("key", "first"));
    } else {
      const Time deadline = clock.now() + patience;
      auto value = store.get("key", deadline);
      ASSERT_TRUE(value) << describe(value.error());
      EXPECT_EQ(*value, "first");
      EXPECT_LT(clock.now(), deadline) << "it came with the set, not with the deadline";
    }
    meet_again("end", 2, store, clock);
  });
}

TEST_P(TransportContract, StoreSetReplacesAndGetEndsAtItsDeadline) {
  run(1, [](int, Transport&, Store& store, Clock& clock) {
    ASSERT_TRUE(store.set("key", "first"));
    ASSERT_TRUE(store.set("key", std::string("se\0cond", 7)));
    auto value = store.get("key", clock.now() + patience);
    ASSERT_TRUE(value);
    EXPECT_EQ(*value, std::string("se\0cond", 7));
    const Time deadline = clock.now() + moment;
    EXPECT_TRUE(store.get("other", deadline).failed_with(Code::timeout));
    EXPECT_GE(clock.now(), deadline);
  });
}

TEST_P(TransportContract, StoreAddCountsOverAllRanks) {
  static constexpr int ranks = 4;
  run(ranks, [](int, Transport&, Store& store, Clock& clock) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(store.add("count", 3));
    meet_again("added", ranks, store, clock);
    auto total = store.add("count", 0);
    ASSERT_TRUE(total);
    EXPECT_EQ(*total, ranks * 10 * 3);
    auto less = store.add("debt", -5);
    ASSERT_TRUE(less);
    EXPECT_LE(*less, -5);
    meet_again("end", ranks, store, clock);
  });
}

TEST_P(TransportContract, TheClockNeverGoesBackAndSleepsLongEnough) {
  run(2, [](int, Transport&, Store& store, Clock& clock) {
    Time last = clock.now();
    for (int i = 0; i < 5; ++i) {
      const Time until = last + std::chrono::milliseconds(1);
      ASSERT_TRUE(clock.sleep_until(until));
      EXPECT_GE(clock.now(), until);
      last = clock.now();
    }
    ASSERT_TRUE(clock.sleep_until(last - std::chrono::milliseconds(1))) << "the past does not wait";
    meet_again("end", 2, store, clock);
  });
}

}  // namespace firedrill
