// One rank over the transport between threads, for the tests of this folder: collectives, and an observer that keeps
// what it is told.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/test_transport.h"

namespace firedrill {

class NoteObserver final : public Observer {
 public:
  void event(const Event& event) override { events.push_back(event); }
  NameId intern(std::string_view text) override {
    names.emplace_back(text);
    return static_cast<NameId>(names.size());
  }
  bool knows_state(const Digest&) override { return false; }
  void describe_state(const Digest&, std::span<const NamedDigest>) override {}
  const std::string& text(NameId name) const { return names[name - 1]; }
  std::vector<Event> of(EventKind kind) const {
    std::vector<Event> found;
    for (const Event& event : events) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }

  std::vector<Event> events;
  std::vector<std::string> names;
};

// One rank's collectives and all under them.
struct TestRank {
  TestRank(TestTransport::Shared& shared, int number, int ranks, CollectivesOptions options)
      : position{.attempt = 1, .rank = number, .step = 4, .phase = Phase::exchange},
        transport(shared, number, ranks),
        collectives(transport, compute, position, observer, options) {}
  Position position;
  NoteObserver observer;
  DirectCompute compute;
  TestTransport transport;
  TransportCollectives collectives;
};

}  // namespace firedrill
