#include "engine/train/rerun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/model/numerics.h"
#include "engine/train/lone_rank.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

// Gives another result at its n-th call.
class WrongOnce final : public ForwardingCompute {
 public:
  WrongOnce(Compute& inner, int nth) : ForwardingCompute(inner), left_(nth) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    ++calls;
    FD_TRY(Value result, inner_.run(kernel, scalars, inputs));
    return --left_ == 0 ? Value::copy_of("wrong") : result;
  }
  int calls = 0;

 private:
  int left_;
};

class Listening final : public ForwardingObserver {
 public:
  explicit Listening(Observer& inner) : ForwardingObserver(inner) {}
  void event(const Event& event) override { kinds.push_back(event.kind); }
  std::vector<EventKind> kinds;
};

Result<Value> keep(std::span<const std::byte>, std::span<Value> inputs) { return std::move(inputs[0]); }
constexpr Kernel kernel = make_kernel("test.keep", KernelKind::forward, keep);

struct Bench {
  explicit Bench(int wrong_at) : wrong(direct, wrong_at) {}
  Result<Value> run() {
    Value input = Value::copy_of("right");
    return rerun.run(kernel, {}, std::span(&input, 1));
  }
  DirectCompute direct;
  WrongOnce wrong;
  SilentObserver silent;
  Listening observer{silent};
  Position position{.attempt = 1};
  RerunCompute rerun{wrong, right_rules(), position, observer};
};

TEST(Rerun, KeepsAResultThatIsTheSameTwice) {
  Bench bench(0);
  const Result<Value> result = bench.run();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text(), "right");
  EXPECT_EQ(bench.wrong.calls, 2);
  EXPECT_TRUE(bench.observer.kinds.empty());
}

TEST(Rerun, EndsWhereTheFirstOrTheSecondResultIsAnotherOne) {
  for (const int wrong_at : {1, 2}) {
    Bench bench(wrong_at);
    const Result<Value> result = bench.run();
    ASSERT_TRUE(result.failed_with(Code::corrupted)) << wrong_at;
    EXPECT_THAT(result.error().message, HasSubstr("test.keep computed twice"));
    EXPECT_EQ(bench.observer.kinds, std::vector{EventKind::rerun_differed});
    EXPECT_TRUE(bench.run()) << "the next call is right again";
  }
}

TEST(VerifyState, NoticesAParameterThatChangedBehindItsDigest) {
  pin_numerics();
  Job job;
  job.model = {.layers = 1, .width = 12, .heads = 2, .sequence = 16};
  const Model model(job);
  DirectCompute compute;
  TrainingState state;
  state.segments.resize(model.segments().size());
  const std::vector<float> numbers = {1, 2, 3};
  state.segments[1].parameters = Value::copy_of(std::span(numbers));
  EXPECT_TRUE(verify_state(compute, model, state)) << "its digest was never asked for";
  (void)state.segments[1].parameters.digest();
  EXPECT_TRUE(verify_state(compute, model, state));
  const_cast<std::byte&>(state.segments[1].parameters.bytes()[5]) ^= std::byte{1};
  const Status status = verify_state(compute, model, state);
  ASSERT_TRUE(status.failed_with(Code::corrupted));
  EXPECT_THAT(status.error().message, HasSubstr(model.segments()[1].name));
}

}  // namespace
}  // namespace firedrill
