#include "harness/explore/swarm/places.h"

#include <utility>

#include "faults/trigger.h"

namespace firedrill {

const Places::ByPhase& Places::of(const FaultSpec& fault) {
  const bool behind_a_restart = fault.at.attempt.value_or(1) > 1;
  const bool has_target = fault.kind == FaultKind::bit_flip || fault.kind == FaultKind::nan;
  const Target target = has_target ? fault.target : Target{};  // which other kinds do not look at
  const FaultKind kind = first_like(fault.kind);
  const auto [slot, added] = known_.try_emplace({kind, target, behind_a_restart, fault.at.path});
  ByPhase& list = slot->second;
  if (!added) return list;
  FaultSpec like{.kind = kind, .at = {.attempt = behind_a_restart ? 2 : 1, .path = fault.at.path}};
  like.target = target;
  for (const FaultPlace& place : places_of(like, census_)) {
    list[static_cast<std::size_t>(place.phase)].push_back({.step = static_cast<std::int32_t>(place.step),
                                                           .nth = place.nth,
                                                           .rank = static_cast<std::int16_t>(place.rank)});
  }
  for (std::vector<Place>& places : list) places.shrink_to_fit();
  return list;
}

bool Places::draw(Rng& rng, FaultSpec& fault) {
  const ByPhase& by_phase = of(fault);
  std::uint64_t total = 0;
  const PhaseWeights& weights = phase_weights();
  for (std::size_t i = 0; i < by_phase.size(); ++i) total += by_phase[i].empty() ? 0 : weights[i];
  if (total == 0) return false;
  std::uint64_t at = rng.below(total);
  for (std::size_t i = 0; i < by_phase.size(); ++i) {
    const std::uint64_t weight = by_phase[i].empty() ? 0 : weights[i];
    if (at >= weight) {
      at -= weight;
      continue;
    }
    const Place& place = by_phase[i][rng.below(by_phase[i].size())];
    fault = placed(std::move(fault),
                   {.rank = place.rank, .step = place.step, .phase = static_cast<Phase>(i), .nth = place.nth});
    return true;
  }
  return false;
}

Result<bool> PlacesOfGrounds::draw(const std::string& ground, const std::function<Result<Census>()>& census, Rng& rng,
                                   FaultSpec& fault) {
  Ground* here = nullptr;
  {
    const std::lock_guard lock(mutex_);
    here = &grounds_[ground];
  }
  const std::lock_guard lock(here->mutex);
  if (!here->places) {
    FD_TRY(Census counted, census());
    here->places.emplace(std::move(counted));
  }
  return here->places->draw(rng, fault);
}

}  // namespace firedrill
