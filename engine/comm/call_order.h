// CallOrder: in which order a task issues the calls of a step, learned from the steps that it has made. So it can tell
// what was due when it stopped, and where it diverged from that order. Pure.
//
// Steps can differ, as one in k compares replicas as well: the orders that came last are kept, and a step diverges if
// it goes on like none of them. That it diverges is no mistake by itself: all ranks do when a first step compares
// replicas.
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
  // One call; numbers stand for its stream and its purpose.
  struct Item {
    std::uint32_t stream = 0;
    std::uint32_t purpose = 0;
    std::int64_t elements = 0;
    CollectiveOp op = CollectiveOp::barrier;
    Phase phase = Phase::none;
    bool operator==(const Item&) const = default;
  };
  enum class Again : std::uint8_t { no, yes, perhaps };
  struct Divergence {
    std::optional<Item> due;   // none: the step had no more calls
    std::optional<Item> came;  // none: the step was over
    // `came` is the call ahead of it once more; or `due` was left out and that is what comes behind it. What has come
    // since may tell.
    Again again = Again::no;
  };

  // The next call; `begins`: the first of its step. Whether it diverges there: once in a step.
  bool note(const Item& call, bool begins);
  // The calls of the step are over. Whether some were still due.
  bool end_step();
  // The last.
  const std::optional<Divergence>& divergence() const { return divergence_; }
  // What is due next: in this step, or ahead of its first call. Nothing, if no step before began alike, or if they
  // began otherwise.
  std::optional<Item> due() const;
  std::optional<Item> due_first() const;

 private:
  static constexpr std::size_t orders_kept = 8;
  struct Known {
    std::vector<Item> calls;
    bool alike = true;  // so far in this step
  };

  void diverge(const Known& from, const Item& call);
  void follow(const Item& call);
  const Known* alike() const;

  std::vector<Known> known_;  // the last first
  std::vector<Item> now_;
  bool diverged_ = false;  // in this step
  std::optional<Divergence> divergence_;
  std::vector<Item> expected_;  // of the step that diverged: from what was due on
  std::size_t since_ = 0;       // calls of it since then, the one that came first among them
  bool left_out_ = false;       // they are what comes behind what was due
  bool repeated_ = false;       // they are the call before once more, and then what was due
};

}  // namespace firedrill
