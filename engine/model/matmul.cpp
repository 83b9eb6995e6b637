#include "engine/model/matmul.h"

#include <torch/torch.h>

#include <ATen/CPUFunctions.h>

#include "engine/base/check.h"

namespace firedrill {
namespace {

at::Tensor view_of(const float* data, std::int64_t rows, std::int64_t columns, std::int64_t batch, bool transposed) {
  // LibTorch has no constant tensors; inputs of a product are only read.
  auto* memory = const_cast<float*>(data);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  if (batch > 0) {
    const std::int64_t sizes[] = {batch, transposed ? columns : rows, transposed ? rows : columns};
    const std::int64_t strides[] = {rows * columns, transposed ? 1 : columns, transposed ? columns : 1};
    return at::from_blob(memory, sizes, strides, options);
  }
  const std::int64_t sizes[] = {transposed ? columns : rows, transposed ? rows : columns};
  const std::int64_t strides[] = {transposed ? 1 : columns, transposed ? columns : 1};
  return at::from_blob(memory, sizes, strides, options);
}

at::Tensor view_of(const ConstMatrix& m) { return view_of(m.data, m.rows, m.columns, m.batch, m.transposed); }

}  // namespace

void matmul(const Matrix& out, const ConstMatrix& a, const ConstMatrix& b) {
  FD_CHECK(out.batch == a.batch && a.batch == b.batch, "a product of batches of {} and {}", a.batch, b.batch);
  const c10::InferenceMode no_graph;
  at::Tensor c = view_of(out.data, out.rows, out.columns, out.batch, false);
  if (out.batch > 0) {
    at::cpu::bmm_out(c, view_of(a), view_of(b));
  } else {
    at::cpu::mm_out(c, view_of(a), view_of(b));
  }
}

}  // namespace firedrill
