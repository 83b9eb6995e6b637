// Calls: what the guards of one attempt's ranks told of their collective calls, read back from the history, with the
// faults that explain it. What collectives_agree and the attribution both work with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check/property.h"

namespace firedrill {

// One call of one rank, from a call_record.
struct IssuedCall {
  std::string_view stream;
  std::int64_t sequence = 0;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::string_view call;  // operation, type, reduce operation, root, purpose
  std::int64_t elements = 0;
  bool completed = false;
  int waited_for = -1;    // a rank
  bool compared = false;  // with waited_for: the members had agreed about the call
  Digest print;
  int lap = 0;  // of a publish: in which of its tries
};

// What one rank told when its attempt failed: its last calls, oldest first.
struct Dump {
  std::vector<IssuedCall> calls;

  const IssuedCall* find(std::string_view stream, std::int64_t sequence) const;
  const IssuedCall* last_completed() const;
  // What it was in when it gave up: a call that it did not complete. A rank's second task may be in another.
  const IssuedCall* current() const;
};

struct AttemptCalls {
  const AttemptSpan* attempt = nullptr;
  std::map<int, Dump> dumps;                                     // by rank; one that died or finished has none
  std::map<int, std::map<std::string_view, std::int64_t>> told;  // by rank and stream: completed in the steps it told
  std::set<int> finished;                                        // ranks
  // The rank issued that call: the record of it or of a later one of the stream is there, or it told as many.
  bool issued(int rank, std::string_view stream, std::int64_t sequence) const;
  bool in(const Event& event) const { return event.attempt == attempt->number; }
};
AttemptCalls calls_of(const Case& run, const AttemptSpan& attempt);

// Which comes first in a rank's work, as far as step, phase and try tell.
bool comes_before(const IssuedCall& a, const IssuedCall& b);

// Two records of one call that disagree.
struct Disagreement {
  int first = 0;  // ranks
  int other = 0;
  const IssuedCall* of_first = nullptr;
  const IssuedCall* of_other = nullptr;
};
// The earliest by step and phase.
std::optional<Disagreement> first_disagreement(const AttemptCalls& calls);

// Two ranks that each wait for the other in a call that the other never issued.
struct CrossWait {
  int first = 0;
  int other = 0;
};
std::optional<CrossWait> cross_wait(const AttemptCalls& calls);

// "all_reduce f32 sum grad (call 17 of dp[0-3], step 5, exchange)".
std::string describe(const IssuedCall& call);
// What differs between two records of one call: "step 6 instead of 5, purpose ...".
std::string differences(const IssuedCall& odd, const IssuedCall& usual);

// A journaled fault of the attempt that changes calls or messages.
struct CallFault {
  std::size_t position = 0;
  const FaultSpec* spec = nullptr;
  const Event* event = nullptr;
};
std::vector<CallFault> call_faults(const Case& run, const AttemptSpan& attempt);
// Nothing that comes behind the fault was saved: the attempt ended before anything of its step (of the next one, if
// that was committed before) or later was acknowledged.
bool nothing_saved_after(const Case& run, const AttemptSpan& attempt, const Event& fault);

}  // namespace firedrill
