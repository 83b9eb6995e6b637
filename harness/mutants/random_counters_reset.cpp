// Generators are seeded again on a resume as at the start of the job: the first dropout masks come once more.
#include "harness/mutants/mutants.h"
#include "harness/mutants/steps.h"

namespace firedrill {
namespace {

class RandomCountersReset final : public Protocol {
 protected:
  Status restored(const CheckpointContext&, const FindResult&, StateView& state) override {
    for (StateGroup& group : state) {
      if (group.name != "extra/random") continue;
      MutableValue numbers{Value(group.value)};
      const auto words = numbers.as<std::int64_t>();
      for (std::size_t i = 1; i < words.size(); i += 2) words[i] = 0;  // key, counter, key, counter, ...
      group.value = std::move(numbers).freeze();
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_random_counters_reset() { return std::make_unique<RandomCountersReset>(); }

}  // namespace firedrill
