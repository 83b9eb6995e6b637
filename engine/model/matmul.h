// Matrix products by LibTorch on plain buffers: the one thing the segments leave to it.
#pragma once

#include <cstdint>
#include <memory>

namespace firedrill {

// Row-major [batch, rows, columns]. A borrowed view.
struct Matrix {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t batch = 0;  // 0: one matrix, not a batch
};

struct ConstMatrix {
  ConstMatrix(const float* from, std::int64_t row_count, std::int64_t column_count, std::int64_t batches = 0)
      : data(from), rows(row_count), columns(column_count), batch(batches) {}
  ConstMatrix(const Matrix& matrix)  // NOLINT(google-explicit-constructor): reading what may be written
      : ConstMatrix(matrix.data, matrix.rows, matrix.columns, matrix.batch) {}

  // The transposed view.
  ConstMatrix t() const {
    ConstMatrix out = *this;
    out.transposed = !transposed;
    return out;
  }

  const float* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t batch;
  bool transposed = false;
};

// out = a * b; `out` may not overlap them.
void matmul(const Matrix& out, const ConstMatrix& a, const ConstMatrix& b);

// Uninitialised floats for the time of one kernel.
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : data_(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(count))) {}
  float* data() const { return data_.get(); }

 private:
  std::unique_ptr<float[]> data_;
};

}  // namespace firedrill
