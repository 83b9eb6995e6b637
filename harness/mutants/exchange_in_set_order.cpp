// Gradients are exchanged in the order of an unordered set, which is another one on one of the ranks.
#include <algorithm>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

class ExchangeInSetOrder final : public TrainingRules {
 public:
  void order_exchange(const Holdings& holdings, std::vector<std::size_t>& segments) const override {
    if (holdings.place.dp_lanes.begin == 0) std::ranges::reverse(segments);
  }
};

}  // namespace

std::unique_ptr<TrainingRules> make_exchange_in_set_order() { return std::make_unique<ExchangeInSetOrder>(); }

}  // namespace firedrill
