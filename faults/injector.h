// Injector: the planned faults of one rank in one attempt. The decorators of its seams (faulty_*.h) ask it before and
// after every call; where no fault can hit, that costs one test of a bit.
//
// A firing is journaled before it takes effect. reorder_calls is one only when a second call is about to be made ahead
// of the first, so it is journaled then: whoever holds a call back says fire_held(). What a fault does to the call
// itself stands in CallSite::file. A rank that dies in a call gets `dead` from it, and with `when: before` the call
// never reached the seam. Injected errors carry `injected`.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/seam/position.h"
#include "engine/seam/pulse.h"
#include "faults/census.h"
#include "faults/effects.h"
#include "faults/spec.h"
#include "faults/trigger.h"

namespace firedrill {

// How often each fault of the plan has fired in this run, shared by the injectors of a rank's tasks: a fault that both
// of them can hit still fires no more often than its `times` say. Threads: any.
class FireCounts {
 public:
  // `before[i]`: how often fault i fired in earlier attempts; missing ones count 0.
  FireCounts(std::size_t faults, const std::vector<int>& before);
  // Counts one more firing, unless `times` (0: without end) are used up.
  bool claim(int fault, int times);

 private:
  std::vector<std::atomic<int>> counts_;  // by index in the plan
};

class Injector {
 public:
  static constexpr std::size_t capacity = 64;  // faults that can hit one rank in one attempt; see mistakes_in_number

  // `plan`: all faults of the run, in plan order; it, `position` and `effects` must outlive the injector.
  // `fired_before[i]`: how often fault i fired in earlier attempts; missing ones count 0. The position names the rank
  // and the attempt. `shared`: counts of the rank, if another of its tasks has an injector too; outlives this one.
  // `pulse`: of the task, which every call of its seams goes through here; none: nobody asks.
  Injector(const std::vector<FaultSpec>& plan, const std::vector<int>& fired_before, const Position& position,
           Effects& effects, FireCounts* shared = nullptr, Pulse* pulse = nullptr);

  // Every call is counted there from now on. Outlives the injector.
  void count_in(TaskCensus& census) {
    census_ = &census;
    watch();
  }
  TaskCensus* census() const { return census_; }

  // No fault can hit this rank in this attempt: its seams need no decorators.
  bool idle() const { return watched_.none(); }
  Effects& effects() { return effects_; }
  bool watches(SeamOp op) const { return watched_[static_cast<std::size_t>(op)]; }

  // Makes the call `inner()` with the faults around it. Its result is a Result or a Status.
  template <class Inner>
  auto around(const CallSite& call, Inner&& inner) -> decltype(inner()) {
    if (pulse_) pulse_->beat(position_);
    if (!watches(call.op)) return inner();
    if (census_ && !effects_.rank_dead()) census_->count(position_, call);
    const Hits hits = hits_of(call);
    if (hits.none() || effects_.rank_dead()) return inner();
    Status before = apply(hits, When::before, call);
    if (before.failed_with(Code::dead)) return std::move(before).error();
    auto result = before ? inner() : decltype(inner())(std::move(before).error());
    if (result.failed_with(Code::dead) || result.failed_with(Code::fenced)) return result;
    if (Status after = apply(hits, When::after, call); !after) return std::move(after).error();
    return result;
  }

  // The call that a fault has held back comes behind another one now; or it is made in its place, and nothing fired.
  Status fire_held(const CallSite& call);
  void drop_held() { held_by_ = nullptr; }

 private:
  using Hits = std::bitset<capacity>;

  struct Armed {
    int index;  // in the plan
    const FaultSpec* spec;
    Trigger trigger;
  };

  void watch();
  Status fire(Armed& armed, const CallSite& call);
  Hits hits_of(const CallSite& call);
  Status apply(const Hits& hits, When when, const CallSite& call);

  std::vector<Armed> armed_;
  std::bitset<seam_op_count> watched_;
  const Position& position_;
  Effects& effects_;
  FireCounts* shared_;
  Armed* held_by_ = nullptr;  // a call is held back by this one
  Pulse* pulse_;
  TaskCensus* census_ = nullptr;
};

}  // namespace firedrill
