#include "engine/train/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "engine/comm/collectives_over_transport.h"
#include "engine/model/numerics.h"
#include "engine/seam/silent_observer.h"
#include "engine/sim/machine.h"

namespace firedrill {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Keeping final : public ForwardingObserver {
 public:
  explicit Keeping(Observer& inner) : ForwardingObserver(inner) {}
  void event(const Event& event) override {
    if (event.kind == EventKind::replicas_compared) events.push_back(event);
  }
  std::vector<Event> events;
};

struct Compared {
  std::vector<std::string> errors;  // by rank; empty: none
  std::vector<Event> events;        // of all ranks
};

// All ranks of the layout compare a state of zeros, after `change` was made to that of each rank.
Compared compare(const Layout& layout, const std::function<void(int rank, StateView&)>& change) {
  pin_numerics();
  Job job;
  job.model = {.layers = 2, .width = 8, .heads = 2, .sequence = 8};
  job.lanes = {.dp = 4, .tp = 2, .cp = 2};
  job.steps = 4;
  EXPECT_TRUE(mistakes_in(layout, job).empty());
  const Model model(job);
  const int world = layout.world_size();
  sim::FiberPool fibers{{.stack_size = 1 << 20}};
  sim::Machine machine(fibers);
  machine.reset({});
  sim::Attempt& attempt =
      machine.start_attempt({.number = 1, .node_of_rank = std::vector<int>(static_cast<std::size_t>(world), 0)});
  Compared result{.errors = std::vector<std::string>(static_cast<std::size_t>(world))};
  SilentObserver silent;
  Keeping observer(silent);
  for (int rank = 0; rank < world; ++rank) {
    attempt.start(rank, [&, rank] {
      sim::Seams seams = attempt.seams(rank);
      Position position{.attempt = 1, .rank = rank, .step = 3};
      DirectCompute compute;
      TransportCollectives collectives(seams.transport, compute, position, observer);
      Parts parts{.files = seams.files,
                  .transport = seams.transport,
                  .collectives = collectives,
                  .store = seams.store,
                  .compute = compute,
                  .clock = seams.clock,
                  .host = seams.host,
                  .observer = observer,
                  .position = position};
      const Groups groups = groups_of(job, layout, rank);
      ASSERT_TRUE(seams.store.set(std::to_string(rank), seams.transport.address()));
      std::vector<std::string> addresses;
      const Time deadline = seams.clock.now() + job.cluster.deadline;
      for (int peer = 0; peer < world; ++peer) {
        addresses.push_back(*seams.store.get(std::to_string(peer), deadline));
      }
      ASSERT_TRUE(seams.transport.connect(addresses, deadline));
      StateView view = blank_view(model, holdings_of(job, layout, model, rank));
      for (StateGroup& group : view) {
        MutableValue zeros(group.dtype, Shape{group.count});
        std::ranges::fill(zeros.bytes(), std::byte{0});
        group.value = std::move(zeros).freeze();
      }
      change(rank, view);
      const ReplicaTable table = replica_table_of(job, layout, model);
      ReplicaCheck check(job, table, groups, right_rules(), parts);
      if (const Status status = check.compare(view); !status) {
        EXPECT_EQ(status.error().code, Code::corrupted);
        result.errors[static_cast<std::size_t>(rank)] = status.error().message;
      }
    });
  }
  EXPECT_TRUE(attempt.run());
  for (int rank = 0; rank < world; ++rank) EXPECT_EQ(attempt.end_of(rank), sim::RankEnd::finished);
  result.events = std::move(observer.events);
  return result;
}

void damage(StateView& view, std::string_view name) {
  for (StateGroup& group : view) {
    if (group.name != name) continue;
    MutableValue changed(group.value);
    changed.bytes()[3] ^= std::byte{1};
    group.value = std::move(changed).freeze();
    return;
  }
  FAIL() << "no group " << name;
}

TEST(ReplicaCheck, EqualReplicasPassInEveryKindOfLayout) {
  for (const Layout& layout : {Layout{.dp = 4}, Layout{.dp = 2, .tp = 2, .pp = 2}, Layout{.dp = 2, .cp = 2, .zero = 1},
                               Layout{.dp = 4, .zero = 3}}) {
    const Compared compared = compare(layout, [](int, StateView&) {});
    for (const std::string& error : compared.errors) EXPECT_EQ(error, "") << to_string(layout);
    ASSERT_EQ(compared.events.size(), compared.errors.size());
    for (const Event& event : compared.events) EXPECT_EQ(event.b, -1);
  }
}

TEST(ReplicaCheck, NamesTheOneOfFourThatDiffersOnEveryRank) {
  const Compared compared = compare({.dp = 4}, [](int rank, StateView& view) {
    if (rank == 2) damage(view, "optimizer.exp_avg.layers.0.mlp.tp.0");
  });
  for (const std::string& error : compared.errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("rank 2 has other bits than most"), HasSubstr("after step 3")));
  }
  for (const Event& event : compared.events) {
    EXPECT_EQ(event.a, 4);
    EXPECT_EQ(event.b, 2);
  }
}

TEST(ReplicaCheck, SaysThatOneOfTwoDiffersAndNotWhich) {
  const Compared compared = compare({.dp = 2}, [](int rank, StateView& view) {
    if (rank == 1) damage(view, "head");
  });
  for (const std::string& error : compared.errors) EXPECT_THAT(error, HasSubstr("nobody can tell which is right"));
  for (const Event& event : compared.events) EXPECT_EQ(event.b, -2);
}

TEST(ReplicaCheck, LetsShardsOfOtherRanksDifferAndComparesThoseThatAreHeldTwice) {
  const auto of_rank = [](int wanted) {
    return [wanted](int rank, StateView& view) {
      if (rank == wanted) damage(view, "optimizer.exp_avg.head");
    };
  };
  for (const std::string& error : compare({.dp = 4, .zero = 1}, of_rank(1)).errors) EXPECT_EQ(error, "");
  for (const std::string& error : compare({.dp = 2, .cp = 2, .zero = 1}, of_rank(1)).errors) {
    EXPECT_THAT(error, HasSubstr("ranks 0, 1 differ"));
  }
}

}  // namespace
}  // namespace firedrill
