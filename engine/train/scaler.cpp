#include "engine/train/scaler.h"

#include <algorithm>
#include <cmath>

namespace firedrill {

ScalerState initial_scaler(const ScalerSpec& spec) {
  return {.scale = spec.dynamic ? static_cast<float>(spec.initial_scale) : 1.0F};
}

ScalerState scaler_after_step(const ScalerSpec& spec, ScalerState state, bool overflow) {
  if (!spec.dynamic) return state;
  // Below this the scale would vanish and never come back, above it would stop being a number.
  constexpr float scale_min = 0x1p-126F;
  if (overflow) {
    const auto lowered = static_cast<float>(state.scale * spec.backoff);
    return {.scale = std::max(lowered, scale_min)};
  }
  if (++state.growth_tracker < spec.growth_interval) return state;
  const auto raised = static_cast<float>(state.scale * spec.growth);
  return {.scale = std::isfinite(raised) ? raised : state.scale};
}

}  // namespace firedrill
