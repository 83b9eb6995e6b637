#include "engine/os/wall_clock.h"

namespace firedrill {

std::chrono::nanoseconds wall_clock_now() { return std::chrono::system_clock::now().time_since_epoch(); }

}  // namespace firedrill
