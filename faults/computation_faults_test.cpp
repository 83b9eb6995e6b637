// Each fault of input, compute and payloads is seen to fire, to do what its name says, and to be journaled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "faults/budget.h"
#include "faults/damage.h"
#include "faults/fake_world.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_input.h"
#include "faults/faulty_transport.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<float> numbers = {1, 2, 3, 4};

// What a backward gives: the gradient of its input, then those of its parameters.
Result<Value> two_packs(std::span<const std::byte>, std::span<Value>) {
  return Value::pack({Value::copy_of(std::span(numbers)), Value::copy_of(std::span(numbers))});
}
constexpr Kernel forward_kernel = make_kernel("test.forward", KernelKind::forward, two_packs);
constexpr Kernel backward_kernel = make_kernel("test.backward", KernelKind::backward, two_packs);
constexpr Kernel update_kernel = make_kernel("test.update", KernelKind::optimizer, two_packs);

class TwoRows final : public Input {
 public:
  Result<Value> rows(const Value&) override {
    return Value::pack({Value::copy_of("abcdef").reinterpret(DType::u8, Shape{2, 3}), Value::copy_of("\1\1")});
  }
};

class KeepingTransport final : public ForwardingTransport {
 public:
  explicit KeepingTransport(Transport& inner) : ForwardingTransport(inner) {}
  Status send(int, Tag, const Value& value, Time) override {
    sent.push_back(value);
    return {};
  }
  std::vector<Value> sent;
};

struct Rank {
  explicit Rank(FaultSpec fault) : plan{std::move(fault)} {}

  std::vector<float> run(const Kernel& kernel, std::size_t part) {
    const Result<Value> result = compute.run(kernel, {}, {});
    const auto of = (*result)[part].as<float>();
    return {of.begin(), of.end()};
  }
  Value sent(const Value& message) {
    EXPECT_TRUE(transport.send(1, 7, message, Time{0}));
    return keeping.sent.back();
  }
  std::size_t fired() const { return world.journaled.size(); }

  std::vector<FaultSpec> plan;
  Position position{.attempt = 1, .rank = 0, .step = 4, .phase = Phase::backward};
  FakeWorld world;
  Injector injector{plan, {}, position, world};
  DirectCompute direct;
  FaultyCompute compute{direct, injector};
  TwoRows two_rows;
  FaultyInput input{two_rows, injector};
  CountingTransport counting;
  KeepingTransport keeping{counting};
  FaultyTransport transport{keeping, injector};
};

TEST(BitFlip, HitsOneNumberOfItsTargetAndNothingElse) {
  const auto hit = [](Target target, const Kernel& kernel, std::size_t part) {
    Rank rank({.kind = FaultKind::bit_flip, .target = target});
    for (const Kernel* other : {&forward_kernel, &backward_kernel, &update_kernel}) {
      if (other == &kernel) continue;
      EXPECT_EQ(rank.run(*other, 0), numbers) << to_string(target);
    }
    const Result<Value> result = rank.compute.run(kernel, {}, {});
    EXPECT_EQ(rank.fired(), 1U) << to_string(target);
    const auto changed = (*result)[part].as<float>();
    EXPECT_THAT(std::vector<float>(changed.begin(), changed.end()), ElementsAre(1, 2, 2, 4)) << to_string(target);
    EXPECT_THAT((*result)[1 - part].as<float>()[2], 3.0F);
    EXPECT_EQ(rank.run(kernel, part), numbers) << "it fires once";
  };
  hit(Target::activation, forward_kernel, 0);
  hit(Target::gradient, backward_kernel, 1);
  hit(Target::parameter, update_kernel, 0);
  hit(Target::moment, update_kernel, 1);
}

TEST(Nan, PutsOneInPlaceOfANumber) {
  Rank rank({.kind = FaultKind::nan, .target = Target::gradient});
  const std::vector<float> gradients = rank.run(backward_kernel, 1);
  EXPECT_TRUE(std::isnan(gradients[2]));
  EXPECT_EQ(gradients[1], 2);
  EXPECT_EQ(rank.fired(), 1U);
}

TEST(Exception, IsThrownFromAKernelAfterItWasJournaled) {
  Rank rank({.kind = FaultKind::exception, .at = {.phase = Phase::backward}});
  EXPECT_THROW((void)rank.run(backward_kernel, 0), std::runtime_error);
  EXPECT_EQ(rank.fired(), 1U);
  EXPECT_EQ(rank.run(backward_kernel, 0), numbers);
}

TEST(CorruptPayload, ChangesAMessageAndLeavesEmptyOnesAlone) {
  const auto damaged = [](PayloadDamage damage) {
    Rank rank({.kind = FaultKind::corrupt_payload, .damage = damage});
    EXPECT_EQ(rank.sent(Value::copy_of(std::span<const std::int64_t>())).size(), 0U) << "nothing to corrupt";
    EXPECT_EQ(rank.fired(), 0U);
    const Value message = Value::pack({Value::copy_of("tag"), Value::copy_of(std::span(numbers))});
    const Value sent = rank.sent(message);
    EXPECT_EQ(rank.fired(), 1U);
    EXPECT_EQ(sent[0].text(), "tag") << "numbers are hit first";
    EXPECT_FALSE(message[1].same_as(sent[1])) << "and what the sender holds is left as it is";
    EXPECT_EQ(message[1].as<float>()[2], 3);
    const auto arrived = sent[1].as<float>();
    return std::vector<float>(arrived.begin(), arrived.end());
  };
  EXPECT_THAT(damaged(PayloadDamage::bit), ElementsAre(1, 2, 2, 4));
  EXPECT_TRUE(std::isnan(damaged(PayloadDamage::nan)[2]));
  EXPECT_THAT(damaged(PayloadDamage::wrong_shard), ElementsAre(3, 4, 1, 2));
}

TEST(CorruptPayload, IsNeverNothing) {
  const std::vector<float> same = {5, 5, 5, 5};
  for (const PayloadDamage damage : {PayloadDamage::bit, PayloadDamage::nan, PayloadDamage::wrong_shard}) {
    for (const Value& message : {Value::copy_of(std::span(same)), Value::copy_of("aa"), Value::copy_of("a")}) {
      EXPECT_FALSE(with_damage(message, {}, damage).same_as(message)) << to_string(damage);
    }
  }
}

TEST(InputFaults, DelayFailGarbleAndShortenWhatIsRead) {
  Rank slow({.kind = FaultKind::slow_shard, .delay = std::chrono::seconds(2)});
  EXPECT_TRUE(slow.input.rows({}));
  EXPECT_EQ(slow.world.time, Time(std::chrono::seconds(2)));

  Rank unreadable({.kind = FaultKind::unreadable_shard});
  const Result<Value> error = unreadable.input.rows({});
  ASSERT_TRUE(error.failed_with(Code::io_error));
  EXPECT_TRUE(error.error().injected);

  Rank bad({.kind = FaultKind::bad_sample});
  const Result<Value> garbage = bad.input.rows({});
  EXPECT_NE((*garbage)[0].as_bytes().text().substr(0, 3), "abc");
  EXPECT_EQ((*garbage)[0].as_bytes().text().substr(3), "def");

  Rank early({.kind = FaultKind::shard_ends_early});
  const Result<Value> fewer = early.input.rows({});
  EXPECT_EQ((*fewer)[0].as_bytes().text(), "abc");
  EXPECT_EQ((*fewer)[1].count(), 1);
  EXPECT_EQ((*early.input.rows({}))[1].count(), 2) << "it fires once";
  for (const Rank* rank : {&slow, &unreadable, &bad, &early}) EXPECT_EQ(rank->fired(), 1U);
}

TEST(ComputationFaults, ArePlannedOnlyWhereTheirTargetIsComputed) {
  Job job;
  job.steps = 4;
  job.lanes.dp = 2;
  const auto mistakes = [&job](const FaultSpec& fault) { return mistakes_in_fault(fault, job, Layout{.dp = 2}); };
  const auto at = [](Phase phase) { return Where{.rank = 0, .phase = phase}; };
  EXPECT_THAT(mistakes({.kind = FaultKind::bit_flip, .at = at(Phase::optimizer), .target = Target::moment}), IsEmpty());
  EXPECT_THAT(mistakes({.kind = FaultKind::nan, .at = at(Phase::forward), .target = Target::parameter}),
              ElementsAre(HasSubstr("that is computed in optimizer")));
  EXPECT_THAT(mistakes({.kind = FaultKind::bit_flip, .at = {.rank = 0, .op = SeamOp::send}}),
              ElementsAre(HasSubstr("bit_flip is about compute")));
  EXPECT_THAT(mistakes({.kind = FaultKind::corrupt_payload, .at = at(Phase::forward)}),
              ElementsAre(HasSubstr("at.phase is forward and the operation send")));
  EXPECT_THAT(mistakes({.kind = FaultKind::bad_sample, .at = at(Phase::input)}), IsEmpty());
}

TEST(ComputationFaults, AreRefusedWhereNothingInTheLayoutNoticesThem) {
  const auto refused = [](const FaultSpec& fault, const Layout& layout) {
    return !mistakes_in_cover({fault}, layout).empty();
  };
  const FaultSpec gradient{.kind = FaultKind::nan, .target = Target::gradient};
  const FaultSpec moment{.kind = FaultKind::bit_flip, .target = Target::moment};
  const FaultSpec payload{.kind = FaultKind::corrupt_payload};
  EXPECT_THAT(mistakes_in_cover({gradient}, {.dp = 4}), ElementsAre(HasSubstr("turn on rerun: true in layout")));
  EXPECT_TRUE(refused(gradient, {.dp = 4, .replica_check = 1})) << "all replicas get the same wrong sum";
  EXPECT_FALSE(refused(gradient, {.dp = 4, .rerun = true}));
  FaultSpec again = gradient;
  again.times = 2;
  EXPECT_THAT(mistakes_in_cover({again}, {.dp = 4, .rerun = true}), ElementsAre(HasSubstr("give times: 1")))
      << "the rerun may be damaged alike";
  EXPECT_TRUE(refused(moment, {.dp = 4}));
  EXPECT_TRUE(refused(moment, {.dp = 1, .replica_check = 1})) << "there are no replicas";
  EXPECT_FALSE(refused(moment, {.dp = 2, .replica_check = 1}));
  EXPECT_TRUE(refused(payload, {.dp = 4, .rerun = true}));
  EXPECT_FALSE(refused(payload, {.dp = 4, .guard = Guard::check}));
  EXPECT_FALSE(refused({.kind = FaultKind::bad_sample}, {.dp = 4})) << "rows are always verified";
}

}  // namespace
}  // namespace firedrill
