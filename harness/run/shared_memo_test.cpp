#include "harness/run/shared_memo.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/rng.h"

namespace firedrill {
namespace {

TEST(SharedMemo, ThreadsThatShareResultsAllGetTheRightOnes) {
  const auto shared = std::make_shared<SharedMemo>(std::size_t{200'000});  // less than all of them take
  std::atomic<std::uint64_t> taken{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        const ConfinedValues of_this_thread;
        sim::MemoTable table({.bytes_max = 10'000});
        Rng rng(thread);
        for (int i = 0; i < 5'000; ++i) {
          const Digest key{.high = rng.below(2'000), .low = 7};
          const Value kept = Value::pack({Value::copy_of(std::to_string(key.high)), Value()});
          if (const Value found = shared->find(key)) {
            ASSERT_TRUE(found.same_as(kept));
            ASSERT_EQ(found.key(), kept.key());
            table.keep(key, found);
            ++taken;
          } else {
            shared->keep(key, kept);
          }
        }
      });
    }
  }
  EXPECT_GT(taken, 1'000U);
  EXPECT_LT(shared->entries(), 2'000U) << "what is full is forgotten";
}

}  // namespace
}  // namespace firedrill
