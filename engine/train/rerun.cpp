#include "engine/train/rerun.h"

#include <fmt/format.h>

#include <vector>

namespace firedrill {

Result<Value> RerunCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  std::vector<Value> again(inputs.begin(), inputs.end());  // held here, so nothing is updated in place
  FD_TRY(const Value first, inner_.run(kernel, scalars, again));
  FD_TRY(Value second, inner_.run(kernel, scalars, inputs));
  if (first.key() == second.key() || !rules_.compares_reruns()) return second;
  emit(observer_, position_, {.kind = EventKind::rerun_differed, .name = observer_.intern(kernel.name)});
  return Error{.code = Code::corrupted,
               .message = fmt::format("{} computed twice from the same inputs gave two results", kernel.name),
               .hint = "a core or the memory of this rank is bad: take its node out"};
}

Status verify_state(const Model& model, const TrainingState& state) {
  for (std::size_t i = 0; i < state.segments.size(); ++i) {
    const OptimizerState& segment = state.segments[i];
    for (const Value* value : {&segment.parameters, &segment.exp_avg, &segment.exp_avg_sq}) {
      if (!*value || value->is_pack() || !value->digest_known() || value->digest_recomputed() == value->digest())
        continue;
      return Error{
          .code = Code::corrupted,
          .message = fmt::format("the state of {} has changed since it was computed", model.segments()[i].name),
          .hint = "the memory of this rank is bad: take its node out"};
    }
  }
  return {};
}

}  // namespace firedrill
