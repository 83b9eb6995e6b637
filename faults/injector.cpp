#include "faults/injector.h"

#include <algorithm>

#include "engine/base/check.h"
#include "faults/kinds.h"

namespace firedrill {
namespace {

// Whether a call of this seam can match, whatever its path.
bool can_match(const FaultSpec& spec, SeamOp op) {
  if (spec.at.op && *spec.at.op != op) return false;
  if (!can_be_about(spec.kind, op)) return false;
  return op == SeamOp::file || (!spec.at.file_op && spec.at.path.empty());
}

When when_of(const FaultSpec& spec) { return info_of(spec.kind).changes_result ? When::after : spec.at.when; }

}  // namespace

FireCounts::FireCounts(std::size_t faults, const std::vector<int>& before) : counts_(faults) {
  for (std::size_t i = 0; i < std::min(faults, before.size()); ++i) counts_[i] = before[i];
}

bool FireCounts::claim(int fault, int times) {
  std::atomic<int>& count = counts_[static_cast<std::size_t>(fault)];
  for (int fired = count; times == 0 || fired < times;) {
    if (count.compare_exchange_weak(fired, fired + 1)) return true;
  }
  return false;
}

Injector::Injector(const std::vector<FaultSpec>& plan, const std::vector<int>& fired_before, const Position& position,
                   Effects& effects, FireCounts* shared, Pulse* pulse)
    : position_(position), effects_(effects), shared_(shared), pulse_(pulse) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Trigger trigger(plan[i], i < fired_before.size() ? fired_before[i] : 0);
    if (!trigger.possible(position.attempt, position.rank)) continue;
    FD_CHECK(armed_.size() < capacity, "more than {} faults for rank {}", capacity, position.rank);
    armed_.push_back({.index = static_cast<int>(i), .spec = &plan[i], .trigger = trigger});
  }
  watch();
}

void Injector::watch() {
  watched_.reset();
  if (census_) watched_.set();
  for (const Armed& armed : armed_) {
    if (armed.trigger.used_up()) continue;
    for (int op = 0; op < seam_op_count; ++op) {
      if (can_match(*armed.spec, static_cast<SeamOp>(op))) watched_.set(static_cast<std::size_t>(op));
    }
  }
}

Injector::Hits Injector::hits_of(const CallSite& call) {
  Hits hits;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    if (armed_[i].trigger.hit(position_, call)) hits.set(i);
  }
  return hits;
}

Status Injector::fire(Armed& armed, const CallSite& call) {
  if (shared_ && !shared_->claim(armed.index, armed.spec->times)) return {};
  const Firing firing{.fault = armed.index, .spec = *armed.spec, .position = position_, .call = call};
  FD_TRY_VOID(effects_.journal(firing));
  armed.trigger.count_firing();
  Status done = effect_of(armed.spec->kind)(firing, effects_);
  // Calls lie within calls: a delay behind each of them is no single long one.
  if (pulse_ && !done.failed_with(Code::dead)) pulse_->beat(position_);
  return done;
}

Status Injector::fire_held(const CallSite& call) {
  FD_CHECK(held_by_ != nullptr, "no fault holds a call back");
  Status fired = fire(*std::exchange(held_by_, nullptr), call);
  watch();
  return fired;
}

Status Injector::apply(const Hits& hits, When when, const CallSite& call) {
  Status reported;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    Armed& armed = armed_[i];
    if (!hits[i] || when_of(*armed.spec) != when) continue;
    if (info_of(armed.spec->kind).changes_result && !*call.value) continue;  // the call failed: nothing to change
    if (armed.spec->kind == FaultKind::reorder_calls) {
      call.collective->held = true;
      held_by_ = &armed;
      continue;
    }
    Status taken = fire(armed, call);
    if (taken.failed_with(Code::dead)) return taken;
    if (reported) reported = std::move(taken);
  }
  watch();
  return reported;
}

}  // namespace firedrill
