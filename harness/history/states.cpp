#include "harness/history/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace firedrill {
namespace {

std::uint64_t pair_of(StateId a, StateId b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

bool is_run(std::string_view name) { return name.ends_with(']'); }

// Walks two lists in name order; `judge(a, b)` gets the two entries of a name, a null pointer where a side lacks it,
// and returns whether to go on.
template <class Judge>
void walk(std::span<const StateTensor> a, std::span<const StateTensor> b, Judge judge) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const StateTensor* left = i < a.size() ? &a[i] : nullptr;
    const StateTensor* right = j < b.size() ? &b[j] : nullptr;
    if (left && right && left->name != right->name) (left->name < right->name ? right : left) = nullptr;
    i += left != nullptr;
    j += right != nullptr;
    if (!judge(left, right)) return;
  }
}

}  // namespace

StateId StateTable::find(const Digest& state) const {
  const auto found = ids_.find(state);
  return found == ids_.end() ? no_state : found->second;
}

StateId StateTable::describe(const Digest& state, std::span<const NamedDigest> tensors) {
  const auto [place, fresh] = ids_.try_emplace(state, static_cast<StateId>(states_.size()));
  if (!fresh) return place->second;
  const std::size_t first = tensors_.size();
  for (const NamedDigest& tensor : tensors) tensors_.push_back({names_.intern(tensor.name), tensor.digest});
  std::sort(tensors_.begin() + static_cast<std::ptrdiff_t>(first), tensors_.end(),
            [](const StateTensor& a, const StateTensor& b) { return a.name < b.name; });
  const auto whole =
      std::count_if(tensors.begin(), tensors.end(), [](const NamedDigest& tensor) { return !is_run(tensor.name); });
  states_.push_back(
      {.digest = state, .first = first, .count = tensors.size(), .whole = static_cast<std::size_t>(whole)});
  return place->second;
}

StateId StateTable::describe(std::span<const NamedDigest> tensors) {
  std::vector<NamedDigest> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(), [](const NamedDigest& a, const NamedDigest& b) { return a.name < b.name; });
  std::vector<std::uint64_t> words;
  for (const NamedDigest& tensor : sorted) {
    const Digest name = digest_of(tensor.name);
    words.insert(words.end(), {name.high, name.low, tensor.digest.high, tensor.digest.low});
  }
  return describe(digest_of(std::span<const std::uint64_t>(words)), sorted);
}

std::span<const StateTensor> StateTable::tensors(StateId state) const {
  const State& found = states_[static_cast<std::size_t>(state)];
  return std::span(tensors_).subspan(found.first, found.count);
}

bool StateTable::within(StateId part, StateId whole) const {
  if (part == whole) return true;
  if (part == no_state || whole == no_state) return false;
  if (within_.contains(pair_of(part, whole))) return true;
  bool holds = true;
  walk(tensors(part), tensors(whole), [&](const StateTensor* a, const StateTensor* b) {
    if (a) holds = b && a->digest == b->digest;
    return holds;
  });
  if (holds) within_.insert(pair_of(part, whole));
  return holds;
}

bool StateTable::equal(StateId a, StateId b) const {
  if (a == b) return true;
  if (a == no_state || b == no_state) return false;
  return states_[static_cast<std::size_t>(a)].whole == states_[static_cast<std::size_t>(b)].whole && within(a, b);
}

bool StateTable::agree(StateId a, StateId b) const {
  if (a == b) return true;
  if (a == no_state || b == no_state) return false;
  if (agreeing_.contains(pair_of(a, b))) return true;
  bool holds = true;
  walk(tensors(a), tensors(b), [&](const StateTensor* left, const StateTensor* right) {
    holds = !left || !right || left->digest == right->digest;
    return holds;
  });
  if (holds) agreeing_.insert(pair_of(a, b));
  return holds;
}

std::optional<std::string_view> StateTable::missing(std::span<const StateId> parts, StateId whole) const {
  std::vector<StateId> key = {whole};
  key.insert(key.end(), parts.begin(), parts.end());
  if (covered_.contains(key)) return std::nullopt;
  const auto wanted = tensors(whole);
  std::vector<bool> held(wanted.size(), false);
  for (const StateId part : parts) {
    std::size_t at = 0;
    for (const StateTensor& tensor : tensors(part)) {
      while (at < wanted.size() && wanted[at].name < tensor.name) ++at;
      if (at < wanted.size() && wanted[at].name == tensor.name) held[at] = true;
    }
  }
  std::map<std::string_view, bool> in_runs;
  const auto tensor_of = [](std::string_view name) { return name.substr(0, name.rfind('[')); };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string_view name = names_.text(wanted[i].name);
    if (!is_run(name)) continue;
    const auto [place, fresh] = in_runs.try_emplace(tensor_of(name), held[i]);
    if (!fresh) place->second = place->second && held[i];
  }
  std::optional<std::string_view> first;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string_view name = names_.text(wanted[i].name);
    const auto runs = in_runs.find(name);
    if (held[i] || is_run(name) || (runs != in_runs.end() && runs->second)) continue;
    if (!first || name < *first) first = name;
  }
  if (!first) covered_.insert(std::move(key));
  return first;
}

std::optional<StateTable::Difference> StateTable::difference(StateId a, StateId b, bool whole_too) const {
  std::optional<Difference> first;
  // Numbers of names depend on what was seen before; the evidence must not, so the first by text is taken.
  const auto take = [&](NameId name, const std::string& how) {
    const std::string_view text = names_.text(name);
    if (!first || text < first->tensor) first = Difference{std::string(text), how};
  };
  walk(tensors(a), tensors(b), [&](const StateTensor* left, const StateTensor* right) {
    if (left && right && left->digest != right->digest) {
      take(left->name, fmt::format("digest {} is not {}", left->digest.hex(), right->digest.hex()));
    }
    if (left && !right) take(left->name, "is not in the other");
    if (!left && right && whole_too && !is_run(names_.text(right->name))) take(right->name, "is in the other only");
    return true;
  });
  return first;
}

}  // namespace firedrill
