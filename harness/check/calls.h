// Calls: what the guards of one attempt's ranks told of their collective calls, read back from the history, with the
// faults that explain it. What collectives_agree and the attribution both work with; who waits for whom: waits.h.
//
// A rank has up to two tasks: the main one, and the one that publishes aside, over groups of its own. Each has a guard,
// and each is in a call of its own, at a step and phase of its own.
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
  bool compared = false;  // not completed, and the members had agreed about the call
  bool damaged = false;   // with waited_for: what came from there was not what had been sent
  Digest print;
  int lap = 0;         // of a publish: in which of its tries
  bool aside = false;  // of the second task
};

// A call as a task knows it from its own steps.
struct NamedCall {
  std::string_view stream;
  std::int64_t sequence = 0;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  std::string_view call;  // operation, purpose
};

NamedCall named(const IssuedCall& call);

// Where a task gave up by itself.
struct GivenUp {
  std::int64_t step = 0;
  Phase phase = Phase::none;
  bool aside = false;
  std::optional<NamedCall> due;  // if it had issued it before
};

// Where a task diverged from the order of its calls in the steps before.
struct Divergence {
  enum class Again : std::uint8_t { no, yes, perhaps };
  std::optional<NamedCall> due;   // none: nothing more was due in the step
  std::optional<NamedCall> came;  // none: the step was over
  Again again = Again::no;        // `came` is the call ahead of it once more; perhaps: or `due` was left out
};

// What one rank told when its attempt failed: the last calls of each task, oldest first.
struct Dump {
  std::vector<IssuedCall> calls;
  std::optional<GivenUp> gave_up;
  std::vector<Divergence> divergences;  // of both tasks, each oldest first

  const IssuedCall* find(std::string_view stream, std::int64_t sequence) const;
  const IssuedCall* last_completed() const;
  // What a task was in when it ended: a call that it did not complete.
  const IssuedCall* current(bool aside) const;
  // Of the main task, else of the second one.
  const IssuedCall* current() const;
};

struct AttemptCalls {
  const AttemptSpan* attempt = nullptr;
  std::map<int, Dump> dumps;                                     // by rank; one that died or finished has none
  std::map<int, std::map<std::string_view, std::int64_t>> told;  // by rank and stream: completed in the steps it told
  std::set<int> finished;                                        // ranks
  std::map<int, int> stage;                                      // of the pipeline, by rank of `dumps`
  std::set<int> past_a_step;                                     // ranks that told the calls of a step of training
  // The rank issued that call: the record of it or of a later one of the stream is there, or it told as many.
  bool issued(int rank, std::string_view stream, std::int64_t sequence) const;
  // The sequence of what would have been its next call of the stream, as far as its records tell: it may have issued
  // more in a step of many calls.
  std::int64_t next_of(int rank, std::string_view stream) const;
  bool in(const Event& event) const { return event.attempt == attempt->number; }
};
AttemptCalls calls_of(const Case& run, const AttemptSpan& attempt);
// Whether a rank of the attempt told its last calls: there are dumps.
bool told_calls(const Case& run, const AttemptSpan& attempt);

// The collective call that a journaled fault hit, as the journal says: "dp[0-3] call 17 all_reduce grad".
struct HitCall {
  std::string_view stream;
  std::int64_t sequence = 0;
  std::string_view operation;
  std::string_view purpose;
};
// Nothing: the fault hit something else.
std::optional<HitCall> hit_call(const Case& run, const Event& fired);

bool is_of_a_micro_batch(Phase phase);
// "dp" of "dp[0-3]".
std::string_view kind_of(std::string_view stream);
// The same call of two ranks or steps, as far as phase, operation, operands, purpose and kind of group tell.
bool alike(const IssuedCall& a, const IssuedCall& b);

// Which comes first in a rank's work, as far as step, phase and try tell.
bool comes_before(const IssuedCall& a, const IssuedCall& b);
// The same, and where that does not tell, in the order in which most ranks have issued such calls.
bool issued_before(const AttemptCalls& calls, const IssuedCall& a, const IssuedCall& b);

// Two records of one call that disagree.
struct Disagreement {
  int first = 0;  // ranks
  int other = 0;
  const IssuedCall* of_first = nullptr;
  const IssuedCall* of_other = nullptr;
};
// The earliest: of a stream by its sequence, of those by step and phase.
std::optional<Disagreement> first_disagreement(const AttemptCalls& calls);

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
