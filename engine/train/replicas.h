// ReplicaCheck: ranks that hold the same parameters, moments or counters tell each other the digests of what they hold
// and compare (layout.replica_check). It finds what one rank alone has wrong, whatever the cause: damage of its memory,
// a payload that was changed behind a reduction. What is wrong on all alike it cannot see.
//
// Who holds the same follows from job and layout (Holdings): dp ranks what ZeRO does not shard, cp ranks everything, tp
// ranks what all tp lanes share. One small all-gather over the world; changes no bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/job/layout.h"
#include "engine/model/transformer.h"
#include "engine/seam/parts.h"
#include "engine/train/rules.h"
#include "engine/train/state.h"

namespace firedrill {

// Who holds what of a layout's state.
struct ReplicaTable {
  std::vector<std::string> names;               // of what is held by several ranks, and of what is not
  std::vector<std::vector<std::size_t>> holds;  // by rank, by group of its view: index in names
};
ReplicaTable replica_table_of(const Job& job, const Layout& layout, const Model& model);

class ReplicaCheck {
 public:
  // What is given must outlive it.
  ReplicaCheck(const Job& job, const ReplicaTable& table, const Groups& groups, const TrainingRules& rules,
               Parts& parts)
      : job_(job), table_(table), groups_(groups), rules_(rules), parts_(parts) {}

  // All ranks call it for the same steps. Every rank comes to the same finding and tells it (event replicas_compared).
  // Errors: corrupted (a difference; names the rank that is alone with its bits, if there are 3 replicas or more), and
  // those of the collectives.
  Status compare(const StateView& view);

 private:
  struct Finding {
    std::size_t group = 0;       // in the table's names
    std::int64_t minority = -1;  // the first rank that differs from most others; -2: no majority
    std::vector<int> ranks;      // that differ, or all that hold it
  };
  // What a rank told of one group of its view.
  static Digest told(const Value& all, std::size_t rank, std::size_t group);
  static Finding judge(std::size_t group, const std::vector<std::pair<int, Digest>>& replicas);
  Finding worst_of(const Value& all) const;
  Status report(const Finding& finding, std::int64_t replicas);

  const Job& job_;
  const ReplicaTable& table_;
  const Groups& groups_;
  const TrainingRules& rules_;
  Parts& parts_;
};

}  // namespace firedrill
