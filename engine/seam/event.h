// Event: one fact of a run. A history is the ordered list of them and the only input of the properties.
//
// An event is a small fixed record; names are numbers that the observer gives out. What the fields mean depends on the
// kind and is listed here, once; the history writes them as JSON under the field names in the comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/seam/clock.h"
#include "engine/seam/position.h"

namespace firedrill {

using NameId = std::uint32_t;  // 0 is the empty name

enum class EventKind : std::uint8_t {
  // By the supervisor or the world (rank -1).
  attempt_started,  // a=world size, b=floor (highest acknowledged step; -1 none), name=layout
  attempt_ended,    // a=ranks dead, b=ranks failed, c=ranks finished; name=why
  rank_ended,  // rank set; a=0 finished, 1 failed with an error, 2 died, 3 failed a check; name=error text, detail=code
  node_lost,   // a=node; b=1 if unsynced data was lost, c=1 if unsynced names were
  run_ended,   // a=1 job finished, 0 gave up; b=attempts used; name=why
  floor_lowered,  // a=old floor, b=new floor; name=candidate that was damaged
  fault_planned,  // a=index in the plan; name=fault in words
  fault_fired,    // a=index in the plan, b=operation; name=fault in words, detail=path; rank, step, phase: where.
                  // Journaled before the effect
  probe,          // a=index of the probe result in the history, b=view (0 processes die, 1 power fails), c=attempt
  golden,         // step; digest=state digest of the golden after that step; name=golden's key
  golden_sample,  // step; a=epoch, b=sample, c=lane: what the job must consume in that step

  // By the engine (rank >= 0).
  rank_started,     // name=layout
  sample,           // step; a=epoch, b=sample, c=lane: consumed by this rank in this step
  step_done,        // step; digest=state digest after the step; a=1 if the update was skipped (loss scale)
  found,            // a=step chosen (-1: none), b=attempt, c=try: the group's choice; name=id, detail=validated if so
  restored,         // step=a step restored, b=attempt, c=try of the checkpoint; digest=state digest; name=id
  started_fresh,    // no checkpoint was found: the job begins at step 0
  save_dispatched,  // step; digest=state digest of the snapshot: an asynchronous publish of it is asked for
  save_started,     // step; a=try
  shard_written,    // step; a=try; name=path; digest=digest of the shard; b=size
  committed,        // step; a=try; name=id of the checkpoint (step-attempt-try), by the coordinator
  validated,        // step; a=try; name=id; by the coordinator, after the mark is durable
  save_failed,      // step; a=try; b=1 if the publish as a whole failed; name=error text, detail=code; c=1 if injected
  acknowledged,     // step; a=try; name=id; digest=state digest saved; by every rank
  retired,          // a=step, b=attempt, c=try of the checkpoint whose tombstone is durable; name=id
  rejected,         // a=step, b=attempt, c=try; name=id, detail=why
  damage,           // a candidate was found damaged: a=step, b=attempt, c=try; name=id, detail=what
  disk_changed,  // a=FileOp, b=bytes, c=0 well or 1+Code of its error; name=path, detail=second path. An operation took
                 // effect
  message_taken,  // a=peer, b=attempt of the message (differs from the event's: it came from another attempt)
  calls,        // step; a=calls of the stream completed in the step; name=stream; digest=of their fingerprints in order
  call_record,  // step, phase; a=sequence (-1: its task gave up), b=elements, c=1 completed, 2 compared, 0 neither,
                // -1-r: waits for rank r (-65536: compared, -131072: damaged); name=stream, detail=what; digest=print
  divergence,   // of a task from the order of its calls in the steps before: step, phase, a=sequence, name=stream and
                // detail=operation and purpose of a call; b=0 it was due where the task gave up, 1 it was due and
                // another came, 2 it came, 3 it came and is the call ahead of it once more, 4 perhaps that
  suspected,  // a=rank that is blamed (-1: none can be named), b=Suspicion, c=sequence of the call, or -1; name=group,
              // detail=what was waited for
  replicas_compared,  // a=replicas, b=rank of the minority (-1: all are equal, -2: no majority); name=what
  rerun_differed,     // a result computed again was another one; name=kernel
  preempt_agreed,     // a=step after which all ranks save and leave
  time_spent,   // step; a=nanoseconds, b=of them waiting for peers; name=a phase ("other": between phases), or a group,
                // in whose calls they were spent. name=pipeline: a=from the first forward to the last backward, b=of
                // them idle (in neither, or waiting in one), c=when it began
  exchanged,    // step; a=bytes sent, b=nanoseconds waited, c=calls; name=group, detail=operation
  memory_used,  // step; a=high-water mark in bytes, b=of them state and gradients, c=gradients; told when it changes
  note,         // name=text for people; never judged
};
inline constexpr int event_kind_count = static_cast<int>(EventKind::note) + 1;

std::string_view to_string(EventKind kind);
std::optional<EventKind> event_kind_from(std::string_view name);

// Why a rank is blamed for a wait that did not end.
enum class Suspicion : std::uint8_t {
  dead,        // its process is gone
  stopped,     // it is there and says nothing
  stuck,       // it says that it lives, and its work does not go on
  slow,        // its work goes on, too slowly
  mismatched,  // it issued another call
  unknown,
};
inline constexpr int suspicion_count = static_cast<int>(Suspicion::unknown) + 1;
std::string_view to_string(Suspicion suspicion);

struct Event {
  EventKind kind = EventKind::note;
  Phase phase = Phase::none;
  std::int16_t rank = -1;
  std::int32_t attempt = 0;
  std::int64_t step = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  NameId name = 0;
  NameId detail = 0;
  Digest digest;
  Time time{0};
};

}  // namespace firedrill
