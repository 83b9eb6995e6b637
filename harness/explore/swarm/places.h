// Places: where in the runs of one job variant and layout a fault of a kind fires, learned from a run that is killed
// once in the middle, so that the attempt behind a restart is known too.
//
// Threads: one for Places; PlacesOfGrounds serves all that draw. Errors: of the census; a kind without a place has an
// empty list.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/rng.h"
#include "faults/census.h"
#include "harness/explore/swarm/weights.h"

namespace firedrill {

class Places {
 public:
  explicit Places(Census census) : census_(std::move(census)) {}

  // Draws one for a fault with these options in this attempt: first the phase by its weight, then any of its calls.
  // Attempts behind the second are taken to be like it. Sets rank, step, phase and nth. False: there is none.
  bool draw(Rng& rng, FaultSpec& fault);

 private:
  struct Place {  // in a phase
    std::int32_t step = 0;
    std::int32_t nth = 1;
    std::int16_t rank = 0;
  };
  using ByPhase = std::array<std::vector<Place>, phase_count>;
  const ByPhase& of(const FaultSpec& fault);

  Census census_;
  // By the first kind that fits the same calls, target, whether it is behind a restart, and path.
  std::map<std::tuple<FaultKind, Target, bool, std::string>, ByPhase> known_;
};

// Those of many job variants and layouts, each counted once.
class PlacesOfGrounds {
 public:
  // Draws as Places does. `census` is asked for when it is the first time for this ground.
  Result<bool> draw(const std::string& ground, const std::function<Result<Census>()>& census, Rng& rng,
                    FaultSpec& fault);

 private:
  struct Ground {
    std::mutex mutex;  // of one ground, so that a count for it holds up nobody who draws in another
    std::optional<Places> places;
  };
  std::mutex mutex_;
  std::map<std::string, Ground> grounds_;
};

}  // namespace firedrill
