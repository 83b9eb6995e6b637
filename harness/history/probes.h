// ProbeResult: what discovery and the audit say of the disk at one moment, in one view. The world asks after every
// operation that changes the disk; the answer is looked up by the digest of the view, so the results live in a table
// that many trials share, and a `probe` event carries an index into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/digest.h"
#include "engine/seam/checkpoint_id.h"
#include "harness/history/states.h"

namespace firedrill {

// What would be there if, at this moment,
enum class ProbeView : std::uint8_t {
  processes_die,  // all processes died: what the caches hold survives
  power_fails,    // every node lost power: only what was synced survives
};
inline constexpr int probe_view_count = 2;
std::string_view to_string(ProbeView view);
std::optional<ProbeView> probe_view_from(std::string_view name);

enum class ProbeOutcome : std::uint8_t { nothing, found, error };
std::string_view to_string(ProbeOutcome outcome);
std::optional<ProbeOutcome> probe_outcome_from(std::string_view name);

// A checkpoint that the audit sees, found by discovery or not.
struct SeenCheckpoint {
  CheckpointId id;
  bool validated = false;  // its mark is there
  bool intact = false;     // committed, whole, every digest holds

  bool operator==(const SeenCheckpoint&) const = default;
};

struct ProbeResult {
  ProbeView view = ProbeView::processes_die;
  ProbeOutcome outcome = ProbeOutcome::nothing;
  std::string error;  // with outcome error: discovery's error in words

  // With outcome found: which, and what the audit says of it.
  CheckpointId found;
  bool complete = false;             // the audit found it whole
  std::string reason;                // why not
  bool provenance_coherent = false;  // manifest and all shards name the same run, job, step, attempt, try
  StateId state = no_state;          // the audit's tensors, by StateTable::describe(tensors)

  std::vector<SeenCheckpoint> seen;  // all that the audit sees, oldest first
};

class ProbeTable {
 public:
  explicit ProbeTable(const StateTable& states) : states_(states) {}
  // Returns the index that the `probe` event carries; results of the same content have the same one.
  std::int64_t add(ProbeResult result);
  const ProbeResult& operator[](std::int64_t index) const;
  // Of the content, free of table numbers: what stands for a probe in the digest of a history.
  const Digest& digest(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(results_.size()); }

 private:
  const StateTable& states_;
  std::vector<ProbeResult> results_;
  std::vector<Digest> digests_;
  std::unordered_map<Digest, std::int64_t> numbers_;  // looked up only, never walked
};

}  // namespace firedrill
