// Coverage: what an exploration has seen. A run gives a Sighting: the digest of its sequence of states, where its
// faults fired, and which rare situations came about. Coverage adds them up, says which were new, and lists what was
// never reached.
//
// Two histories are the same if each rank went through the same states in the same order; when, and in which order
// among ranks, does not count.
//
// Threads: one, or the caller's lock.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "harness/explore/swarm/situations.h"
#include "harness/explore/swarm/weights.h"

namespace firedrill {

// A fault of the kind fired at such a call: in the phase, and among files at the operation.
struct Reach {
  FaultKind kind = FaultKind::kill;
  Phase phase = Phase::none;
  int operation = 0;  // 0: none of files, else 1 + FileOp
  auto operator<=>(const Reach&) const = default;
};
std::string to_string(const Reach& reach);  // "io_error in commit at rename"

struct Sighting {
  Digest states;
  std::vector<Reach> reached;
  SituationSet situations;
};
Sighting sighting_of(const Case& run);

// Every place where a fault that is drawn can fire, by the table of operations: more than any run reaches.
std::set<Reach> reachable(const KindWeights& weights, CatalogKind catalog);

class Coverage {
 public:
  // Whether a reach, a situation or a pair of situations is new. Distinct histories are counted, and are not news.
  bool add(const Sighting& sighting);
  // What is known from an earlier exploration; and what to keep for a later one.
  void load(const std::vector<std::string>& features);
  std::vector<std::string> features() const;

  std::size_t distinct_histories() const { return histories_.size(); }
  const std::set<Reach>& reached() const { return reached_; }
  SituationSet came_about() const { return situations_; }

 private:
  std::unordered_set<Digest> histories_;  // counted only
  std::set<Reach> reached_;
  SituationSet situations_;
  std::vector<SituationSet> pairs_ = std::vector<SituationSet>(situations_max);
};

}  // namespace firedrill
