#include "engine/model/segment.h"

namespace firedrill {

std::int64_t Segment::parameter_count() const {
  std::int64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.count();
  return sum;
}

}  // namespace firedrill
