// Told: an event in words and with a glyph, as a person reads it: in the log of `--watch` and on the page. What only
// counts (bytes, waits, messages, calls, probes, the golden's digests) is not told; sums stand elsewhere.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/history/history.h"

namespace firedrill {

struct Told {
  std::string_view glyph;  // one column wide
  std::string words;       // "committed 2-1-1"
};

// nullopt: an event that only counts.
std::optional<Told> told_of(const History& history, const Event& event);

// One line without its end: time, attempt, rank, step and phase, glyph, words.
//   "  35.92 ms  1  r0   step 2 commit      ◆ committed 2-1-1"
std::string line_of(const Event& event, const Told& told);

}  // namespace firedrill
