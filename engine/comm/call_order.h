// CallOrder: in which order a task issues the calls of a step, learned from its own steps: all steps of a job are
// alike. So a rank can tell what it owed when it stopped, and where it went another way than ever before. Pure.
//
// A few orders are kept, as steps can be of a few sorts: one in k compares replicas as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/seam/collective_op.h"
#include "engine/seam/position.h"

namespace firedrill {

class CallOrder {
 public:
  // Numbers stand for the stream and the purpose.
  struct Step {
    std::uint32_t stream = 0;
    std::uint32_t purpose = 0;
    CollectiveOp op = CollectiveOp::barrier;
    Phase phase = Phase::none;
    bool operator==(const Step&) const = default;
  };
  struct Departure {
    std::optional<Step> due;  // none: the step had no more calls
    Step came;
    bool again = false;  // `came` is the call before it once more
    bool late = false;   // `came` begins the next step
  };

  // Calls of publishes and of recovery have no order of steps.
  static bool covers(Phase phase) { return phase >= Phase::input && phase <= Phase::optimizer; }

  // `begins`: the call is the first of a new step of training. Answers with the departure if it is one: the first of a
  // step, if steps before it began alike.
  std::optional<Departure> note(const Step& call, bool begins);
  // What is due behind what was noted: nothing, if no step before began alike.
  std::optional<Step> due() const;

 private:
  static constexpr std::size_t orders_kept = 4;
  struct Known {
    std::vector<Step> calls;
    bool alike = true;  // so far in this step
  };

  std::optional<Departure> close(const Step& next);
  const Known* alike() const;

  std::vector<Known> known_;  // what the last step was like comes first
  std::vector<Step> now_;
  bool departed_ = false;  // in this step
};

}  // namespace firedrill
