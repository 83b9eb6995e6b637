// The time of day of this machine's clock. For comparing clocks of machines, and for nothing that decides or is kept.
#pragma once

#include <chrono>

namespace firedrill {

std::chrono::nanoseconds wall_clock_now();  // since 1970

}  // namespace firedrill
