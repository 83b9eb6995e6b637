// What every implementation and every decorator of the collectives seam must do, as one parameterised test suite. Its
// user includes this header in one test file, says how ranks are run, and instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Threads, CollectivesContract, testing::Values(CollectivesSubject{"threads", run_ranks}),
//                            by_name);  // [](const auto& info) { return info.param.name; }, not inside the macro
//
// Inputs are such that results are exactly predictable, and sums are of numbers whose order of addition can be seen in
// the last bits: a tree of another form fails.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/seam/collectives.h"

namespace firedrill {

struct CollectivesSubject {
  std::string name;
  // Runs `body` as ranks 0 to ranks-1 of one attempt, all at once, and returns when all have ended.
  std::function<void(int ranks, const std::function<void(int rank, Collectives& collectives)>& body)> run_ranks;
  friend std::ostream& operator<<(std::ostream& out, const CollectivesSubject& subject) { return out << subject.name; }
};

class CollectivesContract : public testing::TestWithParam<CollectivesSubject> {
 protected:
  using Body = std::function<void(int rank, Collectives& collectives)>;
  void run(int ranks, const Body& body) { GetParam().run_ranks(ranks, body); }

  static Call call(std::string_view purpose) {
    return {.purpose = purpose, .deadline = std::chrono::hours(24 * 365 * 10)};
  }

  // All ranks in one group, the lanes in runs as even as they go; with more ranks than lanes some own none.
  static Group group_of(int ranks, int lanes, int me) {
    Group group{.id = 7, .name = "test", .ranks = {}, .lanes = {}, .me = me};
    for (int r = 0; r < ranks; ++r) {
      group.ranks.push_back(r);
      group.lanes.push_back({.begin = r * lanes / ranks, .end = (r + 1) * lanes / ranks});
    }
    return group;
  }

  static std::vector<int> lane_counts(int ranks) {
    const std::set<int> counts = {ranks, ranks + 1, 2 * ranks, 3 * ranks - 1, 5, 8, 16, 33};
    return {counts.begin(), counts.end()};
  }

  // Numbers of very different size and both signs: their sums round at nearly every addition.
  static std::vector<float> rough(int lane, std::int64_t count) {
    Rng rng(static_cast<std::uint64_t>(lane) * 1000 + 17);
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto mantissa = static_cast<float>(static_cast<std::int64_t>(rng.below(1 << 24)) - (1 << 23));
      numbers.push_back(std::ldexp(mantissa, static_cast<int>(rng.below(24)) - 12));
    }
    return numbers;
  }

  // The tree as engine/seam/collectives.h defines it: node `index` of `level`, left child first.
  static float tree_sum(const std::vector<std::vector<float>>& lanes, std::size_t element, int level, int index) {
    const int count = static_cast<int>(lanes.size());
    if (level == 0) return lanes[static_cast<std::size_t>(index)][element];
    const float left = tree_sum(lanes, element, level - 1, 2 * index);
    if ((2 * index + 1) << (level - 1) >= count) return left;
    return left + tree_sum(lanes, element, level - 1, 2 * index + 1);
  }
  static std::vector<float> tree_sum(int lanes, std::int64_t count) {
    std::vector<std::vector<float>> all;
    for (int lane = 0; lane < lanes; ++lane) all.push_back(rough(lane, count));
    const int top = std::bit_width(static_cast<unsigned>(lanes - 1));
    std::vector<float> sums;
    for (std::int64_t i = 0; i < count; ++i) sums.push_back(tree_sum(all, static_cast<std::size_t>(i), top, 0));
    return sums;
  }

  static std::vector<Value> rough_lanes(const Group& group, std::int64_t count) {
    std::vector<Value> lanes;
    const LaneRange owned = group.lanes[static_cast<std::size_t>(group.me)];
    for (int lane = owned.begin; lane < owned.end; ++lane) {
      const std::vector<float> numbers = rough(lane, count);
      lanes.push_back(Value::copy_of(std::span(numbers)));
    }
    return lanes;
  }

  template <class T>
  static Value value_of(std::initializer_list<T> numbers) {
    return Value::copy_of(std::span<const T>(numbers.begin(), numbers.size()));
  }
  static Value words(std::initializer_list<std::int64_t> numbers) { return value_of<std::int64_t>(numbers); }
};

TEST_P(CollectivesContract, SumHasTheBitsOfTheTreeHoweverLanesLieOnRanks) {
  std::size_t other_than_in_a_row = 0;
  for (int ranks = 1; ranks <= 16; ++ranks) {
    for (const int lanes : lane_counts(ranks)) {
      for (const std::int64_t count : {1, 63, 200}) {
        const std::vector<float> expected = tree_sum(lanes, count);
        std::vector<float> in_a_row = rough(0, count);
        for (int lane = 1; lane < lanes; ++lane) {
          const std::vector<float> more = rough(lane, count);
          for (std::size_t i = 0; i < more.size(); ++i) in_a_row[i] += more[i];
        }
        for (std::size_t i = 0; i < expected.size(); ++i) other_than_in_a_row += in_a_row[i] != expected[i] ? 1 : 0;
        run(ranks, [&](int rank, Collectives& collectives) {
          const Group group = group_of(ranks, lanes, rank);
          const auto result = collectives.all_reduce(group, rough_lanes(group, count), ReduceOp::sum, call("sum"));
          ASSERT_TRUE(result) << describe(result.error());
          EXPECT_TRUE(result->same_as(Value::copy_of(std::span(expected))))
              << ranks << " ranks, " << lanes << " lanes, " << count << " elements, on rank " << rank;
        });
      }
    }
  }
  EXPECT_GT(other_than_in_a_row, 1000U) << "the inputs do not show the order of addition";
}

TEST_P(CollectivesContract, SumOfWholeNumbersIsExact) {
  for (const int ranks : {1, 2, 3, 4, 7, 16}) {
    for (const int lanes : lane_counts(ranks)) {
      run(ranks, [&](int rank, Collectives& collectives) {
        const Group group = group_of(ranks, lanes, rank);
        std::vector<Value> floats, integers;
        for (int lane = group.lanes[static_cast<std::size_t>(rank)].begin;
             lane < group.lanes[static_cast<std::size_t>(rank)].end; ++lane) {
          floats.push_back(value_of<float>({1.0F, static_cast<float>(lane), -2.0F * static_cast<float>(lane)}));
          integers.push_back(words({1, lane, std::int64_t{1} << 62}));
        }
        const int sum = lanes * (lanes - 1) / 2;
        const auto f = collectives.all_reduce(group, floats, ReduceOp::sum, call("floats"));
        ASSERT_TRUE(f) << describe(f.error());
        EXPECT_TRUE(f->same_as(
            value_of<float>({static_cast<float>(lanes), static_cast<float>(sum), -2.0F * static_cast<float>(sum)})));
        const auto i = collectives.all_reduce(group, integers, ReduceOp::sum, call("integers"));
        ASSERT_TRUE(i) << describe(i.error());
        const auto wrapped = static_cast<std::int64_t>(static_cast<std::uint64_t>(lanes) << 62);
        EXPECT_TRUE(i->same_as(words({lanes, sum, wrapped})));
      });
    }
  }
}

TEST_P(CollectivesContract, MaximumAndMinimumAreOverAllLanesAndKeepNaN) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int ranks : {1, 2, 5}) {
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
      run(ranks, [&](int rank, Collectives& collectives) {
        const int lanes = 7;
        const Group group = group_of(ranks, lanes, rank);
        std::vector<Value> floats, integers;
        for (int lane = group.lanes[static_cast<std::size_t>(rank)].begin;
             lane < group.lanes[static_cast<std::size_t>(rank)].end; ++lane) {
          const int turned = (lane + 3) % lanes;
          floats.push_back(value_of<float>({static_cast<float>(turned), lane == 4 ? nan : 1.0F}));
          integers.push_back(words({turned, -turned}));
        }
        const bool max = op == ReduceOp::max;
        const auto f = collectives.all_reduce(group, floats, op, call("floats"));
        ASSERT_TRUE(f) << describe(f.error());
        EXPECT_EQ(f->as<float>()[0], max ? 6.0F : 0.0F);
        EXPECT_TRUE(std::isnan(f->as<float>()[1]));
        const auto i = collectives.all_reduce(group, integers, op, call("integers"));
        ASSERT_TRUE(i) << describe(i.error());
        EXPECT_TRUE(i->same_as(max ? words({6, 0}) : words({0, -6})));
      });
    }
  }
}

TEST_P(CollectivesContract, ShapeIsKeptAndPacksAreReducedPartByPart) {
  for (const int ranks : {1, 2, 3, 4}) {
    run(ranks, [&](int rank, Collectives& collectives) {
      const int lanes = 5;
      const Group group = group_of(ranks, lanes, rank);
      std::vector<Value> squares, packs;
      for (const Value& lane : rough_lanes(group, 144)) {
        squares.push_back(lane.reinterpret(DType::f32, Shape{12, 12}));
        packs.push_back(Value::pack({lane, words({1, 2}), Value::pack({squares.back()})}));
      }
      const std::vector<float> numbers = tree_sum(lanes, 144);
      const Value flat = Value::copy_of(std::span(numbers));
      const Value square = flat.reinterpret(DType::f32, Shape{12, 12});
      const auto one = collectives.all_reduce(group, squares, ReduceOp::sum, call("square"));
      ASSERT_TRUE(one) << describe(one.error());
      EXPECT_TRUE(one->same_as(square));
      const auto all = collectives.all_reduce(group, packs, ReduceOp::sum, call("pack"));
      ASSERT_TRUE(all) << describe(all.error());
      EXPECT_TRUE(all->same_as(Value::pack({flat, words({5, 10}), Value::pack({square})})));
    });
  }
}

TEST_P(CollectivesContract, InputsOfAReductionAreNotChanged) {
  run(3, [&](int rank, Collectives& collectives) {
    const Group group = group_of(3, 8, rank);
    const std::vector<Value> lanes = rough_lanes(group, 100);
    std::vector<Digest> before, after;
    for (const Value& lane : lanes) before.push_back(lane.digest_recomputed());
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const auto result = collectives.all_reduce(group, lanes, op, call("sum"));
      ASSERT_TRUE(result) << describe(result.error());
    }
    for (const Value& lane : lanes) after.push_back(lane.digest_recomputed());
    EXPECT_EQ(before, after);
  });
}

TEST_P(CollectivesContract, ReduceScatterGivesEachRankItsShardOfTheSum) {
  for (const int ranks : {1, 2, 3, 4, 7, 16}) {
    for (const int lanes : {ranks, 2 * ranks + 1, 3}) {
      for (const std::int64_t count : {1, 64, 65, 1000}) {
        const std::vector<float> sums = tree_sum(lanes, count);
        run(ranks, [&](int rank, Collectives& collectives) {
          const Group group = group_of(ranks, lanes, rank);
          const auto shard = collectives.reduce_scatter(group, rough_lanes(group, count), ReduceOp::sum, call("shard"));
          ASSERT_TRUE(shard) << describe(shard.error());
          const Range range = shard_range(count, ranks, rank);
          EXPECT_TRUE(shard->same_as(Value::copy_of(std::span(sums)).slice(range.begin, range.count())))
              << ranks << " ranks, " << lanes << " lanes, " << count << " elements, on rank " << rank;
        });
      }
    }
  }
}

TEST_P(CollectivesContract, ReductionsThatAreStartedTogetherGiveTheSameBits) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int lanes : {ranks, 2 * ranks + 1}) {
      for (const std::int64_t count : {65, 1000}) {
        const std::vector<float> sums = tree_sum(lanes, count);
        const Value sum = Value::copy_of(std::span(sums));
        run(ranks, [&](int rank, Collectives& collectives) {
          const Group group = group_of(ranks, lanes, rank);
          const std::vector<Value> mine = rough_lanes(group, count);
          std::vector<std::unique_ptr<PendingReduction>> started;
          for (int i = 0; i < 3; ++i) {
            auto all = collectives.start_all_reduce(group, mine, ReduceOp::sum, call("all"));
            ASSERT_TRUE(all) << describe(all.error());
            started.push_back(*std::move(all));
            auto shard = collectives.start_reduce_scatter(group, mine, ReduceOp::sum, call("shard"));
            ASSERT_TRUE(shard) << describe(shard.error());
            started.push_back(*std::move(shard));
          }
          ASSERT_TRUE(collectives.barrier(group, call("between")));  // another call of the group meanwhile
          for (const auto& reduction : started) ASSERT_TRUE(reduction->advance());
          const Range range = shard_range(count, ranks, rank);
          for (std::size_t i = 0; i < started.size(); ++i) {
            const auto result = started[i]->finish();
            ASSERT_TRUE(result) << describe(result.error());
            EXPECT_TRUE(result->same_as(i % 2 == 0 ? sum : sum.slice(range.begin, range.count())))
                << ranks << " ranks, " << lanes << " lanes, " << count << " elements, on rank " << rank;
          }
        });
      }
    }
  }
}

TEST_P(CollectivesContract, AllGatherGivesEverybodyEverythingInGroupOrder) {
  for (const int ranks : {1, 2, 3, 4, 16}) {
    // Sizes differ between ranks, so that some go one way and some another.
    const auto part_of = [](int rank) {
      const Value text = Value::copy_of(std::string(static_cast<std::size_t>(rank % 3 * 5000), 'a'));
      return rank % 4 == 3 ? Value::pack({text, words({rank})}) : text;
    };
    std::vector<Value> parts;
    for (int rank = 0; rank < ranks; ++rank) parts.push_back(part_of(rank));
    run(ranks, [&](int rank, Collectives& collectives) {
      const Group group = group_of(ranks, ranks, rank);
      for (int again = 0; again < 3; ++again) {
        const auto all = collectives.all_gather(group, part_of(rank), call("gather"));
        ASSERT_TRUE(all) << describe(all.error());
        EXPECT_TRUE(all->same_as(Value::pack(parts))) << ranks << " ranks, on rank " << rank;
      }
    });
  }
}

TEST_P(CollectivesContract, BroadcastGivesEverybodyTheRootsValue) {
  for (const int ranks : {1, 2, 5}) {
    run(ranks, [&](int rank, Collectives& collectives) {
      const Group group = group_of(ranks, ranks, rank);
      for (int root = 0; root < ranks; ++root) {
        const Value mine = rank == root ? words({root, 42}) : Value();
        const auto got = collectives.broadcast(group, mine, root, call("broadcast"));
        ASSERT_TRUE(got) << describe(got.error());
        EXPECT_TRUE(got->same_as(words({root, 42})));
      }
    });
  }
}

TEST_P(CollectivesContract, NobodyLeavesABarrierBeforeAllHaveCome) {
  for (const int ranks : {1, 2, 5}) {
    std::atomic<int> arrived{0};
    run(ranks, [&](int rank, Collectives& collectives) {
      const Group group = group_of(ranks, ranks, rank);
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        ASSERT_TRUE(collectives.barrier(group, call("in")));
        EXPECT_EQ(arrived.load(), round * ranks);
        ASSERT_TRUE(collectives.barrier(group, call("out")));
      }
    });
  }
}

TEST_P(CollectivesContract, AllToAllGivesEachPartToItsMember) {
  for (const int ranks : {1, 2, 5}) {
    run(ranks, [&](int rank, Collectives& collectives) {
      const Group group = group_of(ranks, ranks, rank);
      std::vector<Value> to, from;
      for (int peer = 0; peer < ranks; ++peer) {
        // An empty Value, one without elements, and a number.
        const auto part = [](int source, int target) {
          if ((source + target) % 3 == 2) return Value();
          return (source + target) % 3 == 1 ? words({}) : words({source, target});
        };
        to.push_back(part(rank, peer));
        from.push_back(part(peer, rank));
      }
      const auto got = collectives.all_to_all(group, to, call("exchange"));
      ASSERT_TRUE(got) << describe(got.error());
      ASSERT_EQ(got->parts().size(), from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        ASSERT_EQ(static_cast<bool>((*got)[i]), static_cast<bool>(from[i]));
        if (from[i]) {
          EXPECT_TRUE((*got)[i].same_as(from[i]));
        }
      }
    });
  }
}

TEST_P(CollectivesContract, MessagesOfAPairArriveInOrderAmongOtherCalls) {
  run(3, [&](int rank, Collectives& collectives) {
    const Group group = group_of(3, 3, rank);
    for (std::int64_t i = 0; i < 20; ++i) {
      if (rank == 0) {
        ASSERT_TRUE(collectives.send(group, 2, words({i}), call("p2p")));
      }
      if (i % 5 == 0) {
        ASSERT_TRUE(collectives.barrier(group, call("between")));
      }
      if (rank == 2 && i % 2 == 1) {
        for (const std::int64_t expected : {i - 1, i}) {
          const auto got = collectives.recv(group, 0, call("p2p"));
          ASSERT_TRUE(got) << describe(got.error());
          EXPECT_TRUE(got->same_as(words({expected})));
        }
      }
    }
  });
}

TEST_P(CollectivesContract, GroupsOfTheSameRanksDoNotMix) {
  run(6, [&](int rank, Collectives& collectives) {
    const Group world = group_of(6, 6, rank);
    Group half{.id = 8, .name = "half", .ranks = {}, .lanes = {}, .me = rank / 2};
    for (int i = 0; i < 3; ++i) {
      half.ranks.push_back(2 * i + rank % 2);
      half.lanes.push_back({.begin = i, .end = i + 1});
    }
    for (std::int64_t i = 0; i < 10; ++i) {
      const std::vector<Value> mine = {words({rank, i})};
      const auto part = collectives.all_reduce(half, mine, ReduceOp::sum, call("half"));
      ASSERT_TRUE(part) << describe(part.error());
      EXPECT_TRUE(part->same_as(words({rank % 2 == 0 ? 6 : 9, 3 * i})));
      if (i % 3 != 0) continue;
      const auto whole = collectives.all_reduce(world, mine, ReduceOp::sum, call("world"));
      ASSERT_TRUE(whole) << describe(whole.error());
      EXPECT_TRUE(whole->same_as(words({15, 6 * i})));
    }
  });
}

}  // namespace firedrill
