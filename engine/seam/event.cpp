#include "engine/seam/event.h"

#include <array>

namespace firedrill {
namespace {

constexpr std::array<std::string_view, event_kind_count> names = {"attempt_started", "attempt_ended",
                                                                  "rank_ended",      "node_lost",
                                                                  "run_ended",       "floor_lowered",
                                                                  "fault_planned",   "fault_fired",
                                                                  "probe",           "golden",
                                                                  "golden_sample",   "rank_started",
                                                                  "sample",          "step_done",
                                                                  "found",           "restored",
                                                                  "started_fresh",   "save_dispatched",
                                                                  "save_started",    "shard_written",
                                                                  "committed",       "validated",
                                                                  "save_failed",     "acknowledged",
                                                                  "retired",         "rejected",
                                                                  "damage",          "disk_changed",
                                                                  "message_taken",   "calls",
                                                                  "call_record",     "divergence",
                                                                  "suspected",       "replicas_compared",
                                                                  "rerun_differed",  "preempt_agreed",
                                                                  "time_spent",      "exchanged",
                                                                  "memory_used",     "note"};

}  // namespace

std::string_view to_string(EventKind kind) { return names[static_cast<std::size_t>(kind)]; }

std::string_view to_string(Suspicion suspicion) {
  switch (suspicion) {
    case Suspicion::dead: return "dead";
    case Suspicion::stopped: return "stopped";
    case Suspicion::stuck: return "stuck";
    case Suspicion::slow: return "slow";
    case Suspicion::mismatched: return "mismatched";
    case Suspicion::unknown: return "unknown";
  }
  return "?";
}

std::optional<EventKind> event_kind_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<EventKind>(i);
  }
  return std::nullopt;
}

}  // namespace firedrill
