#include "harness/explore/swarm/deck.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace firedrill {
namespace {

PlannedTrial planned(std::uint64_t number, std::size_t layout, std::string ground) {
  PlannedTrial trial;
  trial.number = number;
  trial.layout = layout;
  trial.ground = std::move(ground);
  return trial;
}

std::vector<std::uint64_t> numbers_of(const std::vector<PlannedTrial>& trials) {
  std::vector<std::uint64_t> numbers;
  for (const PlannedTrial& trial : trials) numbers.push_back(trial.number);
  return numbers;
}

const auto go_on = [] { return false; };
using Numbers = std::vector<std::uint64_t>;

TEST(Deck, AThreadGetsThePlansOfItsLayoutsByTheirGrounds) {
  Deck deck(2);
  deck.will_deal();
  deck.deal({planned(1, 0, "b"), planned(2, 1, "a"), planned(3, 2, "a"), planned(4, 0, "a"), planned(5, 3, "c")});
  EXPECT_EQ(numbers_of(deck.take_own(0)), (Numbers{3, 4, 1}));
  EXPECT_EQ(numbers_of(deck.take_own(0)), Numbers{});
  EXPECT_EQ(numbers_of(deck.take(1, go_on)), (Numbers{2, 5}));
}

TEST(Deck, WhoeverHasNothingTakesHalfOfTheFullestFromItsEnd) {
  Deck deck(3);
  deck.will_deal();
  deck.deal({planned(1, 0, "a"), planned(2, 0, "b"), planned(3, 0, "c"), planned(4, 0, "d"), planned(5, 2, "a")});
  EXPECT_EQ(numbers_of(deck.take_own(1)), Numbers{});
  EXPECT_EQ(numbers_of(deck.take(1, go_on)), (Numbers{3, 4}));
  EXPECT_EQ(numbers_of(deck.take(1, go_on)), (Numbers{2}));
  EXPECT_EQ(numbers_of(deck.take(2, go_on)), (Numbers{5}));
  EXPECT_EQ(numbers_of(deck.take(2, go_on)), (Numbers{1}));
  EXPECT_EQ(numbers_of(deck.take(2, go_on)), Numbers{}) << "nobody deals any more";
}

TEST(Deck, NobodyTakesAnEmptyDeckForTheEndWhileSomebodyDraws) {
  Deck deck(2);
  deck.will_deal();
  std::jthread drawing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    deck.deal({planned(7, 0, "a")});
  });
  EXPECT_EQ(numbers_of(deck.take(1, go_on)), (Numbers{7}));
}

TEST(Deck, WhoeverWaitsIsToldThatItIsEnough) {
  Deck deck(1);
  deck.will_deal();
  int asked = 0;
  EXPECT_TRUE(deck.take(0, [&] { return ++asked == 3; }).empty());
}

TEST(Deck, EveryPlanIsTakenOnceByManyThreads) {
  constexpr std::uint64_t plans = 5'000;
  Deck deck(4);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::multiset<std::uint64_t> taken;
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (;;) {
          auto mine = deck.take_own(thread);
          if (mine.empty()) {
            deck.will_deal();
            const std::uint64_t first = next.fetch_add(100);
            std::vector<PlannedTrial> drawn;
            for (std::uint64_t i = first; i < std::min(first + 100, plans); ++i) {
              drawn.push_back(planned(i, i % 7, std::to_string(i % 11)));
            }
            deck.deal(std::move(drawn));
            if (first < plans) continue;
            mine = deck.take(thread, go_on);
            if (mine.empty()) return;
          }
          const std::lock_guard lock(mutex);
          for (const PlannedTrial& trial : mine) taken.insert(trial.number);
        }
      });
    }
  }
  EXPECT_EQ(taken.size(), plans);
  EXPECT_EQ(std::set<std::uint64_t>(taken.begin(), taken.end()).size(), plans);
}

}  // namespace
}  // namespace firedrill
