// The scalars of the kernel `train.adamw`, whose inputs are parameters, exp_avg, exp_avg_sq, gradients and decay
// ranges.
#pragma once

#include <cstdint>

namespace firedrill {

// Everything the elementwise loop needs, as the float bits it uses: equal steps are equal scalars.
struct AdamWScalars {
  std::uint64_t offset = 0;
  std::uint32_t gradient_scale = 0;
  std::uint32_t keep = 0;  // 1 - lr * weight decay
  std::uint32_t beta1 = 0;
  std::uint32_t one_minus_beta1 = 0;
  std::uint32_t beta2 = 0;
  std::uint32_t one_minus_beta2 = 0;
  std::uint32_t correction2_root = 0;  // sqrt(1 - beta2^step)
  std::uint32_t epsilon = 0;
  std::uint32_t step_size = 0;  // lr / (1 - beta1^step)
  std::uint32_t reserved = 0;
};

}  // namespace firedrill
