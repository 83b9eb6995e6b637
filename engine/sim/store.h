// SimStore: the keys of one attempt, in memory. A counter is kept as decimal text under its key, as everything else.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/seam/store.h"
#include "engine/sim/fiber_pool.h"

namespace firedrill::sim {

class SimRank;

class SimStore {
 public:
  struct Waiter {
    std::string_view key;  // the caller's, while it waits
    SimRank* rank = nullptr;
    Fiber* fiber = nullptr;
  };
  const std::string* find(std::string_view key) const;
  void set(std::string_view key, std::string value);
  void clear() {
    values_.clear();
    waiters.clear();
  }
  std::vector<Waiter> waiters;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> values_;  // never iterated
};

// One rank's way to the store: every call costs a round over the network.
class RankStore final : public Store {
 public:
  explicit RankStore(SimRank& rank) : rank_(rank) {}
  void use(SimStore& store) { store_ = &store; }
  Status set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, Time deadline) override;
  Result<std::int64_t> add(std::string_view key, std::int64_t amount) override;

 private:
  void publish(std::string_view key, std::string value);

  SimRank& rank_;
  SimStore* store_ = nullptr;
};

}  // namespace firedrill::sim
