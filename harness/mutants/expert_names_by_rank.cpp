// Each rank saves its experts under their numbers on this rank, so that those of different ranks have one name and pass
// for copies of each other.
#include <algorithm>
#include <charconv>
#include <limits>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

constexpr std::string_view mark = ".experts.";

// Where the number of an expert stands in a name; npos: it is of no expert.
std::size_t number_at(const std::string& name) {
  const std::size_t found = name.find(mark);
  return found == std::string::npos ? found : found + mark.size();
}

int number_in(const std::string& name) {
  int number = 0;
  std::from_chars(name.data() + number_at(name), name.data() + name.size(), number);
  return number;
}

void renumber(std::string& name, int first) {
  const std::size_t begin = number_at(name);
  name.replace(begin, name.find('.', begin) - begin, std::to_string(number_in(name) - first));
}

class ExpertNamesByRank final : public Protocol {
 protected:
  StateView as_saved(StateView list) const override {
    int first = std::numeric_limits<int>::max();
    const StateGroup* router = nullptr;  // which every rank holds
    for (const StateGroup& group : list) {
      if (number_at(group.name) != std::string::npos) first = std::min(first, number_in(group.name));
      if (group.name.find(".router") != std::string::npos) router = &group;
    }
    for (StateGroup& group : list) {
      if (number_at(group.name) == std::string::npos) continue;
      renumber(group.name, first);
      group.holder = router->holder;
      group.holders = router->holders;
      for (std::size_t i = 0; i < group.tensors.size(); ++i) renumber(group.tensors.change(i).name, first);
    }
    return list;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_expert_names_by_rank() { return std::make_unique<ExpertNamesByRank>(); }

}  // namespace firedrill
