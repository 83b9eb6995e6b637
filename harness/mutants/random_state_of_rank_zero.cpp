// Rank 0 saves its generator and every rank loads that one: all lanes draw the dropout masks of lane 0.
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class RandomStateOfRankZero final : public Protocol {
 protected:
  Status restored(const CheckpointContext& ctx, const FindResult&, StateView& state) override {
    for (StateGroup& group : state) {
      if (group.name != "extra/random") continue;
      FD_TRY(const Value of_rank_zero,
             ctx.parts.collectives.broadcast(ctx.world, group.value, 0, ctx.call("random state")));
      MutableValue numbers(DType::i64, group.value.shape());
      const auto source = of_rank_zero.as<std::int64_t>();
      const auto target = numbers.as<std::int64_t>();
      for (std::size_t i = 0; i < target.size(); ++i) target[i] = source[i % 2];
      group.value = std::move(numbers).freeze();
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_random_state_of_rank_zero() { return std::make_unique<RandomStateOfRankZero>(); }

}  // namespace firedrill
