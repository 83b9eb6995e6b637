// Durations, sizes and bandwidths as people write them: "50us", "80GB", "25GB/s". Parsing what was printed gives the
// same value, bit for bit.
//
// Units: ns, us, ms, s, min, h; B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). A number
// without a unit is refused, but for 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firedrill {

// Not negative; a fraction of a nanosecond or an overflow is refused.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::optional<std::int64_t> parse_bytes(std::string_view text);
// Bytes per second, above 0.
std::optional<double> parse_bandwidth(std::string_view text);

std::string format_duration(std::chrono::nanoseconds duration);  // the largest unit in which it is a whole number
std::string format_bytes(std::int64_t bytes);                    // as above
std::string format_bandwidth(double bytes_per_second);

}  // namespace firedrill
