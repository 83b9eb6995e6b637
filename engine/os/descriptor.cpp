#include "engine/os/descriptor.h"

#include <unistd.h>

namespace firedrill {

void Descriptor::close() {
  if (number_ < 0) return;
  // Linux has closed the descriptor whatever close returns, so it is never called twice.
  ::close(number_);
  number_ = -1;
}

}  // namespace firedrill
