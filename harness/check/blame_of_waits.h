// Blame by waits: whom the waits of a failed attempt point at, where no rank has told more than in which calls it was.
// Part of blame_of (attribution.h). Pure.
#pragma once

#include <optional>
#include <vector>

#include "harness/check/attribution.h"
#include "harness/check/waits.h"

namespace firedrill {

// At that call, of nobody yet.
Blame blame_at(BlameKind kind, const NamedCall& call);
Blame blame_at(BlameKind kind, const IssuedCall& call);
// The rank is missing from that call, or from an earlier one of its stream that the others could complete or put off
// without it.
Blame blame_for_missing(const AttemptCalls& calls, const IssuedCall& waited_in, int rank);
// In this order: a message lost behind a rank that went on; two that wait for each other; a call that some passed by; a
// rank that others wait for; a link.
std::optional<Blame> blame_of_waits(const Case& run, const AttemptCalls& calls, const std::vector<Waiting>& waits);

}  // namespace firedrill
