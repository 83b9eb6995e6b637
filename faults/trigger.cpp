#include "faults/trigger.h"

#include "engine/base/text.h"
#include "faults/damage.h"

namespace firedrill {

bool kind_fits(FaultKind kind, const CallSite& call) {
  const FaultKindInfo& info = info_of(kind);
  if (info.seams != 0 && !can_be_about(kind, call.op)) return false;
  if (kind == FaultKind::corrupt_payload && call.value && !can_be_damaged(*call.value)) return false;
  if (info.seams != 0 && call.collective != nullptr) {
    // Alone in a group there is nobody to disagree with.
    if (call.collective->group.size() == 1) return false;
    const auto op = static_cast<int>(call.collective->op);
    return info.collective_ops == 0 || (info.collective_ops >> op & 1) != 0;
  }
  if (info.file_ops == 0) return true;
  if (call.op != SeamOp::file || (info.file_ops >> static_cast<int>(call.file_op) & 1) == 0) return false;
  // A catalog of another kind than files has one copy: damaged, it is refused, and nothing can stand in for it.
  if (info.harm == Harm::write_damaged && call.path.starts_with("catalog/")) return false;
  return !info.checkpoints_only || call.path.empty() || call.path.starts_with("shards/") ||
         call.path.starts_with("manifests/");
}

namespace {

// Where the call must be more than of the right operation.
bool looks_closer(FaultKind kind) {
  return kind == FaultKind::corrupt_payload || kind == FaultKind::exception || kind == FaultKind::bit_flip ||
         kind == FaultKind::nan || kind == FaultKind::reorder_calls;
}

bool fit_the_same(const FaultKindInfo& a, const FaultKindInfo& b) {
  return !looks_closer(a.kind) && !looks_closer(b.kind) && a.file_ops == b.file_ops && a.seams == b.seams &&
         a.collective_ops == b.collective_ops && a.checkpoints_only == b.checkpoints_only &&
         (a.harm == Harm::write_damaged) == (b.harm == Harm::write_damaged);
}

}  // namespace

FaultKind first_like(FaultKind kind) {
  for (const FaultKindInfo& info : fault_kinds()) {
    if (info.kind == kind || fit_the_same(info, info_of(kind))) return info.kind;
  }
  return kind;
}

bool target_fits(const FaultSpec& fault, const CallSite& call) {
  if (fault.kind == FaultKind::exception) {
    return call.kernel == KernelKind::forward || call.kernel == KernelKind::backward ||
           call.kernel == KernelKind::optimizer;
  }
  if (fault.kind != FaultKind::bit_flip && fault.kind != FaultKind::nan) return true;
  switch (fault.target) {
    case Target::activation: return call.kernel == KernelKind::forward;
    case Target::gradient: return call.kernel == KernelKind::backward;
    case Target::parameter:
    case Target::moment: return call.kernel == KernelKind::optimizer;
  }
  return false;
}

Trigger::Trigger(const FaultSpec& spec, int fired_before) : spec_(&spec), fired_(fired_before) {}

bool Trigger::possible(int attempt, int rank) const {
  return !used_up() && spec_->at.rank == rank && spec_->at.attempt.value_or(attempt) == attempt;
}

bool Trigger::matches(const Position& position, const CallSite& call) const {
  const Where& at = spec_->at;
  if (at.step && *at.step != position.step) return false;
  if (at.phase && *at.phase != position.phase) return false;
  if (at.op && *at.op != call.op) return false;
  if (!kind_fits(spec_->kind, call) || !target_fits(*spec_, call)) return false;
  if (spec_->peer && call.message && call.message->peer != *spec_->peer) return false;
  if (!at.file_op && at.path.empty()) return true;
  if (call.op != SeamOp::file || at.file_op.value_or(call.file_op) != call.file_op) return false;
  return at.path.empty() || matches_glob(at.path, call.path) ||
         (call.file_op == FileOp::rename && matches_glob(at.path, call.second_path));
}

bool Trigger::hit(const Position& position, const CallSite& call) {
  if (used_up() || !matches(position, call)) return false;
  if (step_ != position.step) {
    step_ = position.step;
    counts_ = {};
  }
  return ++counts_[static_cast<std::size_t>(position.phase)] >= spec_->at.nth;
}

}  // namespace firedrill
