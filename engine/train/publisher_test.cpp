#include "engine/train/publisher.h"

#include <gtest/gtest.h>

#include "engine/train/lone_rank.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;

// Takes a second for each publish and remembers what it was given.
class SlowPublisher final : public AsyncPublisher {
 public:
  std::vector<std::int64_t> published;
  std::vector<Value> seen;
  std::optional<Error> failure;
  bool throws = false;

 protected:
  Result<Publication> publish(std::int64_t step, const StateView& snapshot, const Digest&) override {
    EXPECT_EQ(context().parts.position.step, step);
    const Clock& clock = context().parts.clock;
    FD_TRY_VOID(context().parts.clock.sleep_until(clock.now() + milliseconds(1000)));
    FD_CHECK(!throws, "a check of the publisher");
    seen.push_back(snapshot.front().value);
    published.push_back(step);
    if (failure) return *failure;
    return Publication{};
  }
};

// One rank of the sim world whose main is `body`.
class Publishing : public testing::Test {
 protected:
  void run(const std::function<void()>& body) {
    machine_.reset({});
    attempt_ = &machine_.start_attempt({.number = 1, .node_of_rank = {0}});
    attempt_->start(0, [&] {
      publisher_.open(
          {.parts = main_.emplace(attempt_->seams(0)).parts, .job = job_, .world = group_, .identity = identity_},
          aside_.emplace(attempt_->seams(0)).parts, group_, protocol_);
      body();
    });
    const Status ended = attempt_->run();
    EXPECT_TRUE(ended) << ended.error().message;
  }
  Status dispatch(std::int64_t step) {
    state_.resize(1);
    state_.front().value = Value::copy_of(std::array<std::int64_t, 1>{step});
    return publisher_.dispatch(step, state_, {});
  }
  Time now() const { return machine_.now(); }

  struct Task {
    explicit Task(const sim::Seams& given)
        : seams(given),
          collectives(seams.transport, compute, position, observer),
          parts{.files = seams.files,
                .transport = seams.transport,
                .collectives = collectives,
                .store = seams.store,
                .compute = compute,
                .clock = seams.clock,
                .host = seams.host,
                .observer = observer,
                .position = position} {}
    sim::Seams seams;
    Position position;
    SilentObserver observer;
    DirectCompute compute;
    TransportCollectives collectives;
    Parts parts;
  };

  Job job_;
  RunIdentity identity_;
  Protocol protocol_;
  Group group_{.id = 3, .name = "publish", .ranks = {0}, .lanes = {{.begin = 0, .end = 1}}};
  StateView state_;
  sim::FiberPool fibers_;
  sim::Machine machine_{fibers_};
  sim::Attempt* attempt_ = nullptr;
  std::optional<Task> main_;
  std::optional<Task> aside_;
  SlowPublisher publisher_;
};

TEST_F(Publishing, TrainingGoesOnAndTheNextSaveWaits) {
  run([&] {
    ASSERT_TRUE(dispatch(2));
    EXPECT_LT(now(), milliseconds(1)) << "a dispatch does not wait";
    EXPECT_TRUE(publisher_.in_flight());
    EXPECT_FALSE(publisher_.done());
    ASSERT_TRUE(publisher_.join());
    EXPECT_GE(now(), milliseconds(1000));
    EXPECT_FALSE(publisher_.in_flight());
    ASSERT_TRUE(dispatch(4));
    ASSERT_TRUE(main_->parts.clock.sleep_until(milliseconds(5000)));
    EXPECT_TRUE(publisher_.done());
    ASSERT_TRUE(publisher_.join());
    EXPECT_LT(now(), milliseconds(5001)) << "it had ended before";
    ASSERT_TRUE(dispatch(6));
    ASSERT_TRUE(publisher_.join()) << "the notification of the one before must not count for this one";
    EXPECT_EQ(publisher_.published, (std::vector<std::int64_t>{2, 4, 6}));
  });
}

TEST_F(Publishing, TheSnapshotIsTheStateOfTheDispatchAndSharesItsBuffers) {
  run([&] {
    ASSERT_TRUE(dispatch(2));
    const Value dispatched = state_.front().value;
    state_.front().value = {};  // as an optimizer does that wants to update in place
    EXPECT_FALSE(dispatched.unique()) << "the publisher holds the buffer, so it may not be changed";
    ASSERT_TRUE(publisher_.join());
    ASSERT_EQ(publisher_.seen.size(), 1U);
    EXPECT_EQ(publisher_.seen.front().identity(), dispatched.identity());
    publisher_.seen.clear();
    EXPECT_TRUE(dispatched.unique()) << "a publish that has ended holds nothing";
  });
}

TEST_F(Publishing, AnErrorIsTheOutcomeOnceAndOfItsOwnPublish) {
  run([&] {
    publisher_.failure = Error{.code = Code::no_space, .message = "the disk is full"};
    ASSERT_TRUE(dispatch(2));
    EXPECT_TRUE(publisher_.join().failed_with(Code::no_space));
    EXPECT_TRUE(publisher_.join()) << "its outcome has been taken";
    publisher_.failure.reset();
    ASSERT_TRUE(dispatch(4));
    EXPECT_TRUE(publisher_.join());
  });
}

TEST_F(Publishing, AFailedCheckOfTheSecondTaskIsAnErrorOfTheFirst) {
  run([&] {
    publisher_.throws = true;
    ASSERT_TRUE(dispatch(2));
    const Status joined = publisher_.join();
    ASSERT_TRUE(joined.failed_with(Code::internal));
    EXPECT_NE(joined.error().message.find("a check of the publisher"), std::string::npos);
  });
}

TEST_F(Publishing, ASecondOneInFlightIsRefused) {
  run([&] {
    ASSERT_TRUE(dispatch(2));
    EXPECT_THROW((void)dispatch(4), CheckFailure);
    ASSERT_TRUE(publisher_.join());
  });
}

TEST_F(Publishing, EndsWithItsRankAndPublishesNothingMore) {
  run([&] {
    ASSERT_TRUE(dispatch(2));
    main_->parts.host.kill_self();
    EXPECT_TRUE(publisher_.join().failed_with(Code::dead));
  });
  EXPECT_TRUE(publisher_.published.empty());
  EXPECT_LT(now(), milliseconds(1000)) << "its sleep ended with the rank";
}

TEST_F(Publishing, EndsWithTheMainTaskAlsoWhenThatJustLeaves) {
  run([&] { ASSERT_TRUE(dispatch(2)); });
  EXPECT_TRUE(publisher_.published.empty());
  EXPECT_LT(now(), milliseconds(1000));
}

}  // namespace
}  // namespace firedrill
