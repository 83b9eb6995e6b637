// The account of a run as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/history/accounting.h"

namespace firedrill {

// {"phases": [...], "groups": [...], "exchanges": [...], "ranks": [...], "slowest_rank": n, "memory": {...} | null,
// "bubble": {...} | null}; times in nanoseconds, memory in bytes.
nlohmann::ordered_json json_of(const Accounting& accounting);
// A few lines, indented as part of a run's report. Empty for an empty account.
std::string to_text(const Accounting& accounting);
// "1.20 s", "4.00 ms", "13.5 us", "12 ns".
std::string duration_text(std::int64_t nanoseconds);

}  // namespace firedrill
