// StateTable: what stands behind a state digest, as a list of (tensor name, digest of the tensor's bytes). Append-only;
// one table may serve many trials, so that a state seen before is neither described nor compared again.
//
// A rank's state may be part of the whole (it holds some tensors that others do not), so two states are compared by the
// names they share.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/observer.h"
#include "harness/history/names.h"

namespace firedrill {

using StateId = std::int32_t;
inline constexpr StateId no_state = -1;

struct StateTensor {
  NameId name = 0;
  Digest digest;
};

class StateTable {
 public:
  explicit StateTable(NameTable& names) : names_(names) {}

  bool knows(const Digest& state) const { return ids_.contains(state); }
  // no_state if it was never described.
  StateId find(const Digest& state) const;
  // The same digest gives the same id; a second description of it is not looked at.
  StateId describe(const Digest& state, std::span<const NamedDigest> tensors);
  // A state without a digest of its own (the audit's): its digest is that of the list, in name order.
  StateId describe(std::span<const NamedDigest> tensors);

  const Digest& digest(StateId state) const { return states_[static_cast<std::size_t>(state)].digest; }
  // Sorted by NameId.
  std::span<const StateTensor> tensors(StateId state) const;
  std::size_t size() const { return states_.size(); }

  // Every tensor of `part` is in `whole` with the same digest. The answer yes is remembered.
  bool within(StateId part, StateId whole) const;
  // Same names, same digests. Runs of tensors ("w[0:64]") that only b lists do not count: they follow from its tensors.
  bool equal(StateId a, StateId b) const;
  // The names that both have carry the same digests.
  bool agree(StateId a, StateId b) const;
  // The first tensor of `whole` by name that none of the parts holds, neither itself nor as all of its runs
  // ("w[0:64]"). That there is none is remembered.
  std::optional<std::string_view> missing(std::span<const StateId> parts, StateId whole) const;
  // The first tensor by name that differs; `whole_too`: also one that only b has counts. In words: which, and how.
  struct Difference {
    std::string tensor;
    std::string how;  // "digest 12ab... is 34cd... in the other", "is not in the other", "is in the other only"
  };
  std::optional<Difference> difference(StateId a, StateId b, bool whole_too) const;

 private:
  struct State {
    Digest digest;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t whole = 0;  // of them, those that are no runs
  };

  NameTable& names_;
  std::vector<State> states_;
  std::vector<StateTensor> tensors_;
  std::unordered_map<Digest, StateId> ids_;             // looked up only, never walked
  mutable std::unordered_set<std::uint64_t> within_;    // (part, whole) pairs that hold
  mutable std::unordered_set<std::uint64_t> agreeing_;  // (a, b) pairs that hold
  mutable std::set<std::vector<StateId>> covered_;      // wholes, each with its parts behind it, that miss nothing
};

}  // namespace firedrill
