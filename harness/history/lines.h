// Histories as JSON lines (schema firedrill.history/1), so that an outside program can write or read one.
//
// The first line is the header `{"schema": "firedrill.history/1"}`. Every other line is one object:
//   {"event": "found", "time": 1200, "attempt": 2, "rank": 0, "phase": "find", "chosen_step": 4, ..., "id": "4-1-1"}
//   {"state": "<hex>", "tensors": {"embedding.weight": "<hex>", ...}}     before the first event that carries it
//   {"probe_result": 3, "view": "power_fails", "outcome": "found", ...}   before the first event that carries it
// Field names per kind of event: see field_names. Unknown fields and unknown objects are passed over; an unknown kind
// of event is an error. Saving and loading keep the digest of a history; table numbers may change.
//
// The process world uses the same lines: each rank's LineObserver writes them to the supervisor, which feeds them to
// one HistoryReader in the order of arrival; that order is the history's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/seam/observer.h"
#include "harness/history/history.h"

namespace firedrill {

inline constexpr std::string_view history_schema = "firedrill.history/1";

// What the general fields of an event are called in a line of its kind; an empty name: not used by this kind, and then
// written under its general name if it is set.
struct EventFields {
  std::string_view a, b, c, name, detail, digest;
};
const EventFields& field_names(EventKind kind);

// A rank's Observer in a process of its own: every event becomes a line (without its end) for `sink`.
class LineObserver final : public Observer {
 public:
  LineObserver(std::function<void(std::string_view line)> sink, std::function<Time()> now);

  void event(const Event& event) override;
  NameId intern(std::string_view text) override { return names_.intern(text); }
  bool knows_state(const Digest& state) override { return known_.contains(state); }
  void describe_state(const Digest& state, std::span<const NamedDigest> tensors) override;

 private:
  std::function<void(std::string_view)> sink_;
  std::function<Time()> now_;
  NameTable names_;
  std::set<Digest> known_;
};

// Appends what lines say to a history.
class HistoryReader {
 public:
  explicit HistoryReader(History& history) : history_(history) {}
  // Errors: invalid_input, naming what is wrong in the line. An empty line and the header are passed over.
  Status line(std::string_view text);

 private:
  History& history_;
  std::map<std::int64_t, std::int64_t> probes_;  // index in the lines -> index in the table
};

// All lines of a history, header first, each ended by a newline.
std::string to_lines(const History& history);
// Reads a whole file's text; the header must be there. Errors: invalid_input with the line number.
Status append_lines(std::string_view text, History& history);

// The same with a file of the machine (not of the disk under test). Errors: io_error, not_found, invalid_input.
Status save_history(const History& history, const std::string& path);
Status load_history(const std::string& path, History& history);

}  // namespace firedrill
