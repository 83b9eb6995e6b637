#include "harness/check/test_calls.h"

namespace firedrill {
namespace {

// Rank 1 sends rank 0 three messages of step 5, of which that of call `hit` is one too many; step 5 is saved.
class DoubledSend : public CallsTest {
 protected:
  void send_with(std::int64_t hit) {
    fire(FaultKind::duplicate_call, 1, 5, Phase::backward, fmt::format("{} call {} send gradient", stream, hit));
    drill_.add(EventKind::calls, {.rank = 1, .step = 5, .a = 3, .name = stream, .digest = digest_of("aab")});
    drill_.add(EventKind::calls, {.rank = 0, .step = 5, .a = 2, .name = stream, .digest = digest_of("ab")});
    drill_.add(EventKind::acknowledged, {.rank = 0, .step = 5, .name = "5-1-1"});
  }
  static constexpr std::string_view stream = "pp[1>0]";
  static constexpr const char* disagreement = "rank 1 made 3 calls of pp[1>0], rank 0 made 2";
};

TEST_F(DoubledSend, IsExcusedIfItWasTheLastOfItsStepAndNothingBehindThatWasSaved) {
  send_with(1);
  const Spoken third{
      .stream = stream, .sequence = 2, .phase = Phase::backward, .completed = true, .call = "send gradient"};
  record(1, third);
  record(
      0,
      {.stream = stream, .sequence = 2, .step = 6, .phase = Phase::backward, .waited_for = 1, .call = "recv gradient"});
  end();
  expect_agree();
  drill_.add(EventKind::acknowledged, {.rank = 0, .step = 6, .name = "6-1-1"});
  expect_agree_fails(disagreement);
}

TEST_F(DoubledSend, IsNotExcusedIfMoreOfItsStepCameBehindIt) {
  send_with(0);
  end();
  expect_agree_fails(disagreement);
}

TEST_F(DoubledSend, ExcusesNoOtherStreamOfItsStep) {
  send_with(1);
  drill_.add(EventKind::calls, {.rank = 1, .step = 5, .a = 7, .name = dp, .digest = digest_of("ab")});
  drill_.add(EventKind::calls, {.rank = 0, .step = 5, .a = 2, .name = dp, .digest = digest_of("ab")});
  end();
  expect_agree_fails("rank 1 made 7 calls of dp[0-3], rank 0 made 2");
}

}  // namespace
}  // namespace firedrill
