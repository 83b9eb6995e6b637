// Attribution: who is to blame that an attempt failed, from what the guards of its ranks told (history in, nothing
// else). Pure.
//
// The ranks' records are compared by (stream, sequence):
//   mismatch  two ranks issued other calls at one place: those that are not with the majority. Of two, both. Also who
//             waits in a call that most others, who have finished or went on, never made.
//   replica   a rank holds other bits than its replicas. Where nobody can tell which is right: no rank.
//   failed    a rank ended with an error of its own, before any other did badly.
//   slow      the watchdog says so of a rank.
//   dead      a rank that others wait for died and told nothing.
//   missing   a rank that others wait for never issued the call. Where ranks wait for each other crosswise, those for
//             whom most wait.
//   link      everybody issued the call, and two wait for each other, or one for what the other has sent, or what came
//             was not what was sent: both ends.
// In this order; of several findings of a kind the earliest.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check/property.h"

namespace firedrill {

enum class BlameKind : std::uint8_t { mismatch, dead, missing, link, replica, failed, slow };
std::string_view to_string(BlameKind kind);

struct Blame {
  int attempt = 0;
  BlameKind kind = BlameKind::missing;
  std::vector<int> ranks;  // ascending
  // Where: the first call that the blamed ranks issued otherwise or not at all, or died ahead of.
  std::string stream;
  std::int64_t sequence = -1;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::string call;                           // operation, type, reduce operation, root, purpose
  std::string what;                           // mismatch: what differs; replica, failed, slow: more words
  std::map<int, const Event*> died;           // by rank: its end, which says where it was
  std::map<int, std::string> last_completed;  // by rank: the last call it completed, in words
};

// The parts of a step and the others, as people name them: save to retire are "checkpoint", rendezvous to restore
// "recovery".
std::string_view work_of(Phase phase);

// Of one attempt; nothing if its ranks told no records, or if they explain nothing.
std::optional<Blame> blame_of(const Case& run, const AttemptSpan& attempt);
// Whether the call that is named is the one that the journaled fault hit, if both are collective calls: of the same
// group and sequence, and the operation is named. A doubled call shows in the one behind it; who died or stopped may be
// missed in an earlier one, whose end was still due, or in a later one, if all others went past the call that was hit
// without it; a link that was cut, in any later one; who gave up ahead of a receive in a step of which nobody knew the
// calls, in one of another group.
bool is_at_call(const Case& run, const Blame& blame, const Event& fired);
// Of all attempts.
std::vector<Blame> attribution_of(const Case& run);
// "attempt 1: rank 2 is missing from all_reduce f32 sum grad (call 17 of dp[0-3], step 5, exchange)".
std::string describe(const Blame& blame);

}  // namespace firedrill
