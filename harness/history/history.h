// History: the ordered events of one run, and the only input of the properties. Events refer to names, states and probe
// results by number; the Tables behind the numbers may be shared by many histories of one thread.
//
// Threads: one. Appending costs a few nanoseconds; reset() keeps the memory for the next trial. `of(kind)` builds an
// index over all kinds when first asked for after an append.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/event.h"
#include "harness/history/names.h"
#include "harness/history/probes.h"
#include "harness/history/states.h"

namespace firedrill {

struct Tables {
  NameTable names;
  StateTable states{names};
  ProbeTable probes{states};
};

class History {
 public:
  explicit History(Tables& tables);
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  History(History&&) = default;

  void append(const Event& event) {
    events_.push_back(event);
    indexed_ = false;
  }
  // The event as it is, but for its time.
  void append(const Event& event, Time time) {
    append(event);
    events_.back().time = time;
  }
  // Forgets the events, keeps the memory and the tables.
  void reset();

  std::span<const Event> events() const { return events_; }
  std::size_t size() const { return events_.size(); }
  const Event& operator[](std::size_t i) const { return events_[i]; }
  // Positions of the events of one kind, ascending.
  std::span<const std::uint32_t> of(EventKind kind) const {
    if (!indexed_) index();
    const std::size_t k = static_cast<std::size_t>(kind);
    return {order_.data() + first_[k], first_[k + 1] - first_[k]};
  }

  Tables& tables() { return *tables_; }
  const Tables& tables() const { return *tables_; }
  std::string_view text(NameId name) const { return tables_->names.text(name); }
  const ProbeResult& probe(const Event& event) const { return tables_->probes[event.a]; }

  // Same seed, same digest: over all events in order, times included; names, states and probes count by content, never
  // by their numbers in a table.
  Digest digest() const;

 private:
  void index() const;

  Tables* tables_;
  std::vector<Event> events_;
  mutable std::vector<std::uint32_t> order_;  // positions, grouped by kind
  mutable std::array<std::uint32_t, event_kind_count + 1> first_{};
  mutable bool indexed_ = false;
};

}  // namespace firedrill
