#include <array>

#include "harness/history/lines.h"

namespace firedrill {
namespace {

constexpr std::size_t kinds = static_cast<std::size_t>(event_kind_count);

constexpr std::array<EventFields, kinds> make_fields() {
  std::array<EventFields, kinds> all;
  const auto of = [&all](EventKind kind) -> EventFields& { return all[static_cast<std::size_t>(kind)]; };
  of(EventKind::attempt_started) = {.a = "world_size", .b = "floor", .name = "layout", .detail = "nodes"};
  of(EventKind::attempt_ended) = {.a = "ranks_dead", .b = "ranks_failed", .c = "ranks_finished", .name = "why"};
  of(EventKind::rank_ended) = {.a = "outcome", .name = "error", .detail = "code"};
  of(EventKind::node_lost) = {.a = "node", .b = "data_lost", .c = "names_lost"};
  of(EventKind::run_ended) = {.a = "finished", .b = "attempts_used", .name = "why"};
  of(EventKind::floor_lowered) = {.a = "old_floor", .b = "new_floor", .name = "candidate"};
  of(EventKind::fault_planned) = {.a = "index", .name = "fault"};
  // `file_operation`: 0 where it is none of files, else 1 + FileOp.
  of(EventKind::fault_fired) = {.a = "index", .b = "file_operation", .name = "fault", .detail = "path"};
  of(EventKind::probe) = {.a = "result", .b = "view", .c = "probed_attempt"};
  of(EventKind::golden) = {.name = "key", .digest = "state"};
  of(EventKind::golden_sample) = {.a = "epoch", .b = "sample", .c = "lane"};
  of(EventKind::rank_started) = {.name = "layout"};
  of(EventKind::sample) = {.a = "epoch", .b = "sample", .c = "lane"};
  of(EventKind::step_done) = {.a = "skipped", .digest = "state"};
  of(EventKind::found) = {
      .a = "chosen_step", .b = "chosen_attempt", .c = "chosen_try", .name = "id", .detail = "standing"};
  of(EventKind::restored) = {.b = "saved_attempt", .c = "saved_try", .name = "id", .digest = "state"};
  of(EventKind::save_dispatched) = {.digest = "state"};
  of(EventKind::save_started) = {.a = "try"};
  of(EventKind::shard_written) = {.a = "try", .b = "size", .name = "path", .digest = "shard"};
  of(EventKind::committed) = {.a = "try", .name = "id"};
  of(EventKind::validated) = {.a = "try", .name = "id"};
  of(EventKind::save_failed) = {.a = "try", .b = "whole", .c = "injected", .name = "error", .detail = "code"};
  of(EventKind::acknowledged) = {.a = "try", .name = "id", .digest = "state"};
  of(EventKind::retired) = {.a = "saved_step", .b = "saved_attempt", .c = "saved_try", .name = "id"};
  of(EventKind::rejected) = {.a = "saved_step", .b = "saved_attempt", .c = "saved_try", .name = "id", .detail = "why"};
  of(EventKind::damage) = {.a = "saved_step", .b = "saved_attempt", .c = "saved_try", .name = "id", .detail = "what"};
  of(EventKind::disk_changed) = {
      .a = "operation", .b = "bytes", .c = "failed_with", .name = "path", .detail = "second_path"};
  of(EventKind::message_taken) = {.a = "peer", .b = "sent_in_attempt"};
  of(EventKind::calls) = {.a = "calls", .name = "stream", .digest = "fingerprints"};
  of(EventKind::call_record) = {
      .a = "sequence", .b = "elements", .c = "completed", .name = "stream", .detail = "call", .digest = "fingerprint"};
  of(EventKind::divergence) = {.a = "sequence", .b = "standing", .name = "stream", .detail = "call"};
  of(EventKind::suspected) = {.a = "blamed", .b = "suspicion", .c = "sequence", .name = "group", .detail = "call"};
  of(EventKind::replicas_compared) = {.a = "replicas", .b = "minority", .name = "what"};
  of(EventKind::rerun_differed) = {.name = "kernel"};
  of(EventKind::preempt_agreed) = {.a = "save_after"};
  of(EventKind::time_spent) = {.a = "nanoseconds", .b = "waiting", .c = "began", .name = "what"};
  of(EventKind::exchanged) = {.a = "bytes", .b = "waited", .c = "calls", .name = "group", .detail = "operation"};
  of(EventKind::memory_used) = {.a = "high_water", .b = "persistent", .c = "gradients"};
  of(EventKind::note) = {.name = "text"};
  return all;
}

constexpr std::array<EventFields, kinds> fields = make_fields();

}  // namespace

const EventFields& field_names(EventKind kind) { return fields[static_cast<std::size_t>(kind)]; }

}  // namespace firedrill
