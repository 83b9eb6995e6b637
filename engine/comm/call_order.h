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
    std::int64_t elements = 0;
    CollectiveOp op = CollectiveOp::barrier;
    Phase phase = Phase::none;
    bool operator==(const Step&) const = default;
  };
  enum class Again : std::uint8_t { no, yes, perhaps };
  struct Departure {
    std::optional<Step> due;  // none: the step had no more calls
    Step came;
    bool late = false;  // `came` begins the next step
    // `came` is the call before it once more, or that which comes behind `due`: what came since then may tell.
    Again again = Again::no;
  };

  // Calls of publishes and of recovery have no order of steps.
  static bool covers(Phase phase) { return phase >= Phase::input && phase <= Phase::optimizer; }

  // `begins`: the call is the first of a new step of training. Whether it departs: the first of a step, if steps before
  // it began alike.
  bool note(const Step& call, bool begins);
  // The last.
  const std::optional<Departure>& departure() const { return departure_; }
  // What is due behind what was noted: nothing, if no step before began alike.
  std::optional<Step> due() const;

 private:
  static constexpr std::size_t orders_kept = 4;
  struct Known {
    std::vector<Step> calls;
    bool alike = true;  // so far in this step
  };

  bool close(const Step& next);
  void depart(const Known& from, const Step& call);
  void follow_departure(const Step& call);
  const Known* alike() const;

  std::vector<Known> known_;  // what the last step was like comes first
  std::vector<Step> now_;
  bool departed_ = false;  // in this step
  std::optional<Departure> departure_;
  std::vector<Step> expected_;  // of the step that departed: from what was due on
  std::size_t since_ = 0;       // calls of it since then, the one that came first among them
  bool left_out_ = false;       // they are what comes behind what was due
  bool repeated_ = false;       // they are the call before once more, and then what was due
};

}  // namespace firedrill
