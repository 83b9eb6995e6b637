// Histories as JSON lines (schema firedrill.history/1), so that an outside program can write or read one.
//
// The first line is the header `{"schema": "firedrill.history/1"}`. Every other line is one object:
//   {"event": "found", "time": 1200, "attempt": 2, "rank": 0, "phase": "find", "chosen_step": 4, ..., "id": "4-1-1"}
//   {"state": "<hex>", "tensors": {"embedding.weight": "<hex>", ...}}     before the first event that carries it
//   {"probe_result": 3, "view": "power_fails", "outcome": "found", ...}   before the first event that carries it
// Field names per kind of event: see field_names. Unknown fields and unknown objects are passed over; an unknown kind
// of event is an error. Saving and loading keep the digest of a history; table numbers may change.
//
// Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "harness/history/history.h"

namespace firedrill {

inline constexpr std::string_view history_schema = "firedrill.history/1";

// What the general fields of an event are called in a line of its kind; an empty name: not used by this kind, and then
// written under its general name if it is set.
struct EventFields {
  std::string_view a, b, c, name, detail, digest;
};
const EventFields& field_names(EventKind kind);

// All lines of a history, header first, each ended by a newline.
std::string to_lines(const History& history);
// Reads a whole file's text; the header must be there. Errors: invalid_input with the line number.
Status append_lines(std::string_view text, History& history);

// The same with a file of the machine (not of the disk under test). Errors: io_error, not_found, invalid_input.
Status save_history(const History& history, const std::string& path);
Status load_history(const std::string& path, History& history);

}  // namespace firedrill
