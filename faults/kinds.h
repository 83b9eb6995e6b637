// What each kind of fault does when it fires: one function a kind, one file a function. To add a kind, add it to
// FaultKind, write its file and enter it in kinds.cpp; its options stand in FaultSpec and in harness/scenario/fields.h.
#pragma once

#include "engine/base/error.h"
#include "faults/effects.h"
#include "faults/spec.h"

namespace firedrill {

// Takes the effect, and throws only as `exception`. An error is what the call then reports; without one the call goes
// on, perhaps as a changed one (CallSite::file). Called after the firing was journaled.
using TakeEffect = Status (*)(const Firing& firing, Effects& effects);

Status take_kill(const Firing& firing, Effects& effects);
Status take_kill_node(const Firing& firing, Effects& effects);
Status take_io_error(const Firing& firing, Effects& effects);
Status take_no_space(const Firing& firing, Effects& effects);
Status take_lose_unsynced_data(const Firing& firing, Effects& effects);
Status take_lose_unsynced_names(const Firing& firing, Effects& effects);
Status take_torn_write(const Firing& firing, Effects& effects);
Status take_dropped_write(const Firing& firing, Effects& effects);
Status take_short_write(const Firing& firing, Effects& effects);
Status take_misdirected_write(const Firing& firing, Effects& effects);
Status take_bit_flip_on_write(const Firing& firing, Effects& effects);
Status take_bit_flip_at_rest(const Firing& firing, Effects& effects);
Status take_failed_sync(const Firing& firing, Effects& effects);
Status take_lying_sync(const Firing& firing, Effects& effects);
Status take_slow_disk(const Firing& firing, Effects& effects);
Status take_stale_listing(const Firing& firing, Effects& effects);
Status take_stale_stat(const Firing& firing, Effects& effects);
Status take_late_visibility(const Firing& firing, Effects& effects);
Status take_file_vanishes(const Firing& firing, Effects& effects);
Status take_clock_skew(const Firing& firing, Effects& effects);
Status take_hang(const Firing& firing, Effects& effects);
Status take_stall(const Firing& firing, Effects& effects);
Status take_slow(const Firing& firing, Effects& effects);
Status take_preempt(const Firing& firing, Effects& effects);
Status take_exit(const Firing& firing, Effects& effects);
Status take_reorder_calls(const Firing& firing, Effects& effects);
Status take_skip_call(const Firing& firing, Effects& effects);
Status take_duplicate_call(const Firing& firing, Effects& effects);
Status take_wrong_count(const Firing& firing, Effects& effects);
Status take_wrong_dtype(const Firing& firing, Effects& effects);
Status take_wrong_root(const Firing& firing, Effects& effects);
Status take_wrong_reduce_op(const Firing& firing, Effects& effects);
Status take_early_abort(const Firing& firing, Effects& effects);
Status take_delay_message(const Firing& firing, Effects& effects);
Status take_drop_message(const Firing& firing, Effects& effects);
Status take_duplicate_message(const Firing& firing, Effects& effects);
Status take_late_message(const Firing& firing, Effects& effects);
Status take_partition(const Firing& firing, Effects& effects);
Status take_slow_link(const Firing& firing, Effects& effects);
Status take_flaky_link(const Firing& firing, Effects& effects);
Status take_slow_shard(const Firing& firing, Effects& effects);
Status take_unreadable_shard(const Firing& firing, Effects& effects);
Status take_bad_sample(const Firing& firing, Effects& effects);
Status take_shard_ends_early(const Firing& firing, Effects& effects);
Status take_bit_flip(const Firing& firing, Effects& effects);
Status take_nan(const Firing& firing, Effects& effects);
Status take_exception(const Firing& firing, Effects& effects);
Status take_corrupt_payload(const Firing& firing, Effects& effects);

TakeEffect effect_of(FaultKind kind);

}  // namespace firedrill
