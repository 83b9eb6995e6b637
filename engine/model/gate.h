// The gate of the MLP, silu(gate) * up, and its gradient, on rows of [gate | up].
#pragma once

#include "engine/model/arithmetic.h"
#include "engine/model/matmul.h"

namespace firedrill {

inline Four sigmoid(const Four& x) { return 1.0F / (1.0F + portable_exp(-x)); }

// `gate_up` is [n, 2 * hidden]; `gated` [n, hidden].
inline void gate_rows(const Matrix& gate_up, const Matrix& gated) {
  const std::int64_t hidden = gated.columns;
  for (std::int64_t row = 0; row < gated.rows; ++row) {
    const float* gate = gate_up.data + row * 2 * hidden;
    const float* up = gate + hidden;
    float* out = gated.data + row * hidden;
    by_fours(hidden, [=](std::int64_t i, auto count) {
      const Four g = load(gate + i, count);
      store(g * sigmoid(g) * load(up + i, count), out + i, count);
    });
  }
}

// Overwrites gate_up with its gradient, from that of `gated`.
inline void gate_rows_backward(const Matrix& gate_up, const float* d_gated) {
  const std::int64_t hidden = gate_up.columns / 2;
  for (std::int64_t row = 0; row < gate_up.rows; ++row) {
    float* gate = gate_up.data + row * 2 * hidden;
    float* up = gate + hidden;
    const float* d = d_gated + row * hidden;
    by_fours(hidden, [=](std::int64_t i, auto count) {
      const Four g = load(gate + i, count);
      const Four s = sigmoid(g);
      const Four d_out = load(d + i, count);
      store(d_out * load(up + i, count) * (s * (1.0F + g * (1.0F - s))), gate + i, count);
      store(d_out * (g * s), up + i, count);
    });
  }
}

}  // namespace firedrill
