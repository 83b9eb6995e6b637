#include "engine/train/schedule.h"

#include <algorithm>

namespace firedrill {

double cosine_of_half_turns(double x) {
  // cos(pi x) is odd around x = 1/2: fold to [0, 1/2], where the Taylor series converges fast.
  const bool second_half = x > 0.5;
  const double angle = (second_half ? 1 - x : x) * 3.14159265358979323846;
  const double square = angle * angle;
  double sum = 1;
  for (int n = 13; n >= 1; --n) sum = 1 - square * sum / ((2 * n - 1) * (2 * n));  // Horner, from the far end
  return second_half ? -sum : sum;
}

double learning_rate(const OptimizerSpec& spec, int steps, std::int64_t step) {
  if (step <= spec.warmup_steps) return spec.lr * static_cast<double>(step) / spec.warmup_steps;
  if (spec.decay == Decay::constant) return spec.lr;
  const std::int64_t decay_steps = std::max<std::int64_t>(steps - spec.warmup_steps, 1);
  const double done = static_cast<double>(std::min(step - spec.warmup_steps, decay_steps)) / decay_steps;
  const double low = spec.lr * spec.lr_min_ratio;
  return low + 0.5 * (1 + cosine_of_half_turns(done)) * (spec.lr - low);
}

}  // namespace firedrill
