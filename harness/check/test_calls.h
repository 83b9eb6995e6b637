// CallsTest: what the guards of four ranks told of their calls in an attempt that fails, for the tests of the
// attribution.
#pragma once

#include "harness/check/attribution.h"
#include "harness/check/property_expect.h"

namespace firedrill {

inline constexpr std::string_view dp = "dp[0-3]";
inline constexpr std::string_view world = "world[0-3]";

// Four ranks with a guard, in an attempt that fails.
class CallsTest : public ::testing::Test {
 protected:
  CallsTest() : drill_(4) {
    drill_.plan.layout = Layout{.dp = 4, .guard = Guard::record};
    drill_.start_fresh();
  }

  struct Spoken {
    std::string_view stream = dp;
    std::int64_t sequence = 4;
    std::int64_t step = 5;
    Phase phase = Phase::exchange;
    bool completed = false;
    int waited_for = -1;
    std::string_view call = "all_reduce f32 sum gradients";
    std::int64_t count = 8;
    bool damaged = false;
  };
  void record(int rank, const Spoken& spoken) {
    const std::string print = fmt::format("{} {} {}", spoken.call, spoken.step, spoken.count);
    drill_.add(EventKind::call_record,
               {.rank = rank,
                .step = spoken.step,
                .phase = spoken.phase,
                .a = spoken.sequence,
                .b = spoken.count,
                .c = spoken.completed ? 1 : -1 - spoken.waited_for - (spoken.damaged ? 131072 : 0),
                .name = spoken.stream,
                .detail = spoken.call,
                .digest = digest_of(print)});
  }
  void gives_up(int rank, std::int64_t step, Phase phase) {
    drill_.add(EventKind::call_record, {.rank = rank, .step = step, .phase = phase, .a = -1, .detail = "abort"});
  }
  void fire(FaultKind kind, int rank, std::int64_t step = 5, Phase phase = Phase::exchange,
            std::string_view call = {}) {
    drill_.plan.faults = {{.kind = kind, .at = {.rank = rank}}};
    drill_.add(EventKind::fault_fired, {.rank = rank, .step = step, .phase = phase, .a = 0, .detail = call});
  }
  void end() { drill_.add(EventKind::attempt_ended, {.a = 0, .b = 4, .c = 0}); }

  std::optional<Blame> blame() {
    History history(drill_.tables);
    for (const Event& event : drill_.events) history.append(event);
    const Case run(history, drill_.plan);
    return blame_of(run, run.attempts().front());
  }
  void expect_agree_fails(std::string_view evidence) { expect_fail(drill_, judge_collectives_agree, evidence); }
  void expect_agree() { expect_pass(drill_, judge_collectives_agree); }

  DrillBuilder drill_;
};

}  // namespace firedrill
