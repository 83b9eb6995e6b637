#include "harness/run/differing_bits.h"

#include <charconv>
#include <map>
#include <set>
#include <string>

#include "engine/train/state.h"
#include "harness/check/properties.h"

namespace firedrill {
namespace {

struct Size {
  std::int64_t elements = 0;
  std::int64_t bits = 0;  // of one element
};

std::map<std::string, Size, std::less<>> sizes_of(const Job& job) {
  const Model model(job);
  std::map<std::string, Size, std::less<>> sizes;
  for (const StateGroup& group : blank_view(model, holdings_of(job, {}, model, 0))) {
    for (const TensorSlot& tensor : group.tensors) {
      sizes[tensor.name] = {.elements = tensor.count(), .bits = 8 * static_cast<std::int64_t>(size_of(group.dtype))};
    }
  }
  return sizes;
}

// Of a tensor, or of a run of one, "w[64:128]".
std::int64_t bits_of(std::string_view name, const std::map<std::string, Size, std::less<>>& sizes) {
  const std::size_t bracket = name.ends_with(']') ? name.rfind('[') : name.size();
  const auto whole = sizes.find(name.substr(0, bracket));
  if (whole == sizes.end()) return 1;  // a tensor that the job does not have: of unknown size, and different
  if (bracket == name.size()) return whole->second.elements * whole->second.bits;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  const char* last = name.data() + name.size();
  const auto first = std::from_chars(name.data() + bracket + 1, last, begin);
  std::from_chars(first.ptr + 1, last, end);
  return (end - begin) * whole->second.bits;
}

// What the state holds that the golden does not hold alike.
void add_differing(const Case& run, StateId state, StateId golden, std::set<std::string_view>& names) {
  std::map<NameId, Digest> wanted;
  for (const StateTensor& tensor : run.states().tensors(golden)) wanted[tensor.name] = tensor.digest;
  for (const StateTensor& tensor : run.states().tensors(state)) {
    const auto found = wanted.find(tensor.name);
    if (found == wanted.end() || found->second != tensor.digest) names.insert(run.history().text(tensor.name));
  }
}

}  // namespace

std::int64_t differing_bits(const Case& run) {
  const auto first = first_difference(run);
  if (!first) return 0;
  std::set<std::string_view> names = {first->tensor};
  const StateId golden = run.golden(first->step);
  for (const EventKind kind : {EventKind::step_done, EventKind::restored}) {
    for (const std::uint32_t position : run.history().of(kind)) {
      const Event& event = run.event(position);
      const StateId state = run.states().find(event.digest);
      if (event.step == first->step && state != no_state) add_differing(run, state, golden, names);
    }
  }
  const auto sizes = sizes_of(run.plan().job);
  std::int64_t bits = 0;
  for (const std::string_view name : names) bits += bits_of(name, sizes);
  return bits;
}

}  // namespace firedrill
