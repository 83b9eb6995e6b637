#include "engine/comm/digested_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/test_transport.h"
#include "engine/seam/silent_observer.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

// Sends another payload than it was given in the n-th message, the digest beside it untouched.
class Corrupting final : public ForwardingTransport {
 public:
  Corrupting(Transport& inner, int nth) : ForwardingTransport(inner), left_(nth) {}
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    if (--left_ != 0) return inner_.send(peer, tag, value, deadline);
    const std::vector<float> other = {9, 9};
    return inner_.send(peer, tag, Value::pack({Value::copy_of(std::span(other)), value[1]}), deadline);
  }

 private:
  int left_;
};

// Two ranks reduce [1, 2] each; rank 0 owns the first call. Message `nth` of rank `by` is corrupted.
std::array<Result<Value>, 2> reduce(int by, int nth) {
  TestTransport::Shared shared;
  std::array<Result<Value>, 2> results = {Value(), Value()};
  run_threads(2, [&](int rank) {
    TestTransport plain(shared, rank, 2);
    Corrupting corrupting(plain, by == rank ? nth : 0);
    DigestedTransport digested(corrupting);
    DirectCompute compute;
    const Position position{.attempt = 1, .rank = rank};
    SilentObserver observer;
    TransportCollectives collectives(digested, compute, position, observer);
    const Group group{.id = 2, .name = "dp", .ranks = {0, 1}, .lanes = {{0, 1}, {1, 2}}, .me = rank};
    const std::vector<float> mine = {1, 2};
    const Value lane = Value::copy_of(std::span(mine));
    auto& result = results[static_cast<std::size_t>(rank)];
    result =
        collectives.all_reduce(group, std::span(&lane, 1), ReduceOp::sum, {.purpose = "grad", .deadline = Time{0}});
    if (!result) collectives.abort(result.error());
  });
  return results;
}

TEST(DigestedTransport, ChangesNothingOfWhatArrives) {
  for (const Result<Value>& result : reduce(0, 0)) {
    ASSERT_TRUE(result) << describe(result.error());
    EXPECT_EQ(result->as<float>()[1], 4.0F);
  }
  TestTransport::Shared shared;
  TestTransport plain(shared, 0, 1);
  DigestedTransport digested(plain);
  ASSERT_TRUE(digested.send(0, 5, Value(), Time{0}));
  const Result<Value> nothing = digested.recv(0, 5, Time{0});
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing) << "an empty Value stays one";
}

TEST(DigestedTransport, NamesBothEndsAndTheCallWhosePayloadWasChangedAheadOfTheReductionOrBehindIt) {
  const auto ahead = reduce(1, 1);
  ASSERT_TRUE(ahead[0].failed_with(Code::corrupted));
  EXPECT_THAT(ahead[0].error().message, HasSubstr("all_reduce of grad over dp: the payload from rank 1 to rank 0"));
  EXPECT_THAT(ahead[0].error().message, HasSubstr("call 0"));
  const auto behind = reduce(0, 1);
  ASSERT_TRUE(behind[1].failed_with(Code::corrupted));
  EXPECT_THAT(behind[1].error().message, HasSubstr("the payload from rank 0 to rank 1"));
}

TEST(DigestedTransport, RefusesAMessageWithoutADigest) {
  TestTransport::Shared shared;
  TestTransport plain(shared, 0, 1);
  DigestedTransport digested(plain);
  ASSERT_TRUE(plain.send(0, 5, Value::copy_of("bare"), Time{0}));
  EXPECT_TRUE(digested.recv(0, 5, Time{0}).failed_with(Code::corrupted));
}

}  // namespace
}  // namespace firedrill
