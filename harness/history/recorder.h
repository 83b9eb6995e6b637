// HistoryRecorder: the Observer that writes straight into a History of the same process (the sim world, and the
// supervisor's own events in the process world). It stamps the time.
#pragma once

#include <functional>
#include <utility>

#include "engine/seam/observer.h"
#include "harness/history/history.h"

namespace firedrill {

class HistoryRecorder final : public Observer {
 public:
  HistoryRecorder(History& history, std::function<Time()> now) : history_(history), now_(std::move(now)) {}

  void event(const Event& event) override { history_.append(event, now_()); }
  NameId intern(std::string_view text) override { return history_.tables().names.intern(text); }
  bool knows_state(const Digest& state) override { return history_.tables().states.knows(state); }
  void describe_state(const Digest& state, std::span<const NamedDigest> tensors) override {
    history_.tables().states.describe(state, tensors);
  }

 private:
  History& history_;
  std::function<Time()> now_;
};

}  // namespace firedrill
