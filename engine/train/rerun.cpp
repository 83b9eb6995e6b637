#include "engine/train/rerun.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace firedrill {
namespace {

// Two numbers for each input: the digest that its bytes have now; zeros for one that is absent or has no bytes.
Result<Value> run_digests(std::span<const std::byte>, std::span<Value> inputs) {
  std::vector<std::int64_t> words;
  for (const Value& input : inputs) {
    const Digest now = input && !input.is_pack() ? input.digest_recomputed() : Digest{};
    words.insert(words.end(), {static_cast<std::int64_t>(now.high), static_cast<std::int64_t>(now.low)});
  }
  return Value::copy_of(std::span<const std::int64_t>(words));
}

constexpr Kernel digests_kernel = make_kernel("train.digests_of_state", KernelKind::other, run_digests);

}  // namespace

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

Status verify_state(Compute& compute, const Model& model, const TrainingState& state) {
  for (std::size_t i = 0; i < state.segments.size(); ++i) {
    const OptimizerState& segment = state.segments[i];
    std::array values = {segment.parameters, segment.exp_avg, segment.exp_avg_sq};
    for (Value& value : values) {
      if (value && (value.is_pack() || !value.digest_known())) value = Value();
    }
    const std::array known = values;
    FD_TRY(const Value digests, compute.run(digests_kernel, {}, values));
    const auto words = digests.as<std::int64_t>();
    for (std::size_t k = 0; k < known.size(); ++k) {
      const Digest now{.high = static_cast<std::uint64_t>(words[2 * k]),
                       .low = static_cast<std::uint64_t>(words[2 * k + 1])};
      if (!known[k] || now == known[k].digest()) continue;
      return Error{
          .code = Code::corrupted,
          .message = fmt::format("the state of {} has changed since it was computed", model.segments()[i].name),
          .hint = "the memory of this rank is bad: take its node out"};
    }
  }
  return {};
}

}  // namespace firedrill
