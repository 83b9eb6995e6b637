// Links that are cut, slow or lose messages, and messages that come an attempt too late.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/sim/machine.h"

namespace firedrill::sim {
namespace {

using Main = std::function<void(const Seams&)>;

class LinksTest : public testing::Test {
 protected:
  LinksTest() { machine_.reset({}); }
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

TEST_F(LinksTest, MessagesOverALinkThatWasCutAreLostUntilItHeals) {
  Attempt& attempt = start(2, {[&](const Seams& seams) {
                                 connect(seams);
                                 attempt_->disturb_link(0, 1, {.cut = true, .until = Time{1'000'000}});
                                 EXPECT_TRUE(seams.transport.send(1, 1, text("lost"), never));
                                 EXPECT_TRUE(seams.clock.sleep_until(Time{2'000'000}));
                                 EXPECT_TRUE(seams.transport.send(1, 1, text("after"), never));
                                 EXPECT_TRUE(seams.transport.recv(1, 2, never)) << "the other way works";
                               },
                               [&](const Seams& seams) {
                                 connect(seams);
                                 EXPECT_TRUE(seams.transport.send(0, 2, text("back"), never));
                                 const Result<Value> taken = seams.transport.recv(0, 1, never);
                                 ASSERT_TRUE(taken);
                                 EXPECT_EQ(taken->text(), "after");
                               }});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
}

TEST_F(LinksTest, SlowAndFlakyLinksKeepEveryMessageAndItsOrder) {
  Attempt& attempt =
      start(2, {[&](const Seams& seams) {
                  connect(seams);
                  attempt_->disturb_link(0, 1, {.slower = Time{50'000}, .lose_every = 2, .again = Time{400'000}});
                  for (const char* word : {"one", "two", "three"}) {
                    EXPECT_TRUE(seams.transport.send(1, 1, text(word), never));
                  }
                },
                [&](const Seams& seams) {
                  connect(seams);
                  const Time before = seams.clock.now();
                  for (const char* word : {"one", "two", "three"}) {
                    const Result<Value> taken = seams.transport.recv(0, 1, never);
                    ASSERT_TRUE(taken);
                    EXPECT_EQ(taken->text(), word);
                  }
                  EXPECT_GE(seams.clock.now() - before, Time{400'000});
                }});
  attempt_ = &attempt;
  EXPECT_TRUE(attempt.run());
}

TEST_F(LinksTest, AMessageThatComesInALaterAttemptIsNotTakenThere) {
  const auto both = [&](bool takes) {
    machine_.send_late(0, 1, 1, 7, text("old"));
    std::string taken;
    Attempt& attempt = machine_.start_attempt({.number = 2, .node_of_rank = {0, 0}});
    if (takes) attempt.takes_message_of = [](int) { return true; };
    attempt_ = &attempt;
    attempt.start(0, [&] {
      connect(attempt.seams(0));
      EXPECT_TRUE(attempt.seams(0).transport.send(1, 7, text("new"), never));
    });
    attempt.start(1, [&] {
      connect(attempt.seams(1));
      const Result<Value> message = attempt.seams(1).transport.recv(0, 7, never);
      ASSERT_TRUE(message);
      taken = std::string(message->text());
    });
    EXPECT_TRUE(attempt.run());
    return taken;
  };
  EXPECT_EQ(both(false), "new");
  EXPECT_EQ(both(true), "old");
}

}  // namespace
}  // namespace firedrill::sim
