// Census: the calls that the ranks of a run made, each with its position, so that whoever plans faults can draw among
// the places that exist. places_of counts them as a Trigger does, so a fault planned at one of its places fires in a
// run of the same plan.
//
// Injectors tell it (Injector::count_in); where nobody counts, a call costs them nothing. What a fault then changes is
// not in it: plan one fault by one census, or let further ones not fire.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/effects.h"
#include "faults/spec.h"

namespace firedrill {

// One call, as far as it decides which faults can be about it. Small: an exploration keeps millions of them.
struct CountedCall {
  std::int32_t step = 0;
  Phase phase = Phase::none;
  SeamOp op = SeamOp::file;
  FileOp file_op = FileOp::create;
  CollectiveOp collective = CollectiveOp::barrier;
  KernelKind kernel = KernelKind::other;
  bool alone = false;      // a collective in a group of one
  bool overtaken = false;  // a collective: the rank made another one before it waited for this one
  bool has_bytes = true;   // of a message: there is something to damage
  std::int32_t peer = -1;  // of a message: a rank
  std::int32_t path = -1;  // index of Census::path; -1: none
  std::int32_t second = -1;
};

// The calls of one task of a rank in one attempt, in their order.
struct TaskCalls {
  int attempt = 0;
  int rank = 0;
  std::vector<CountedCall> calls;
};

class Census {
 public:
  // Of one more task; stays where it is.
  TaskCalls& add_task(int attempt, int rank) { return tasks_.emplace_back(TaskCalls{attempt, rank, {}}); }
  const std::deque<TaskCalls>& tasks() const { return tasks_; }
  std::int32_t number_of(std::string_view path);
  const std::string& path(std::int32_t number) const { return paths_[static_cast<std::size_t>(number)]; }
  // Of all tasks.
  std::int64_t calls() const;
  // The run is over: gives back what was set aside for more.
  void shrink();

 private:
  std::deque<TaskCalls> tasks_;
  std::deque<std::string> paths_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

// What the injector of one task tells.
class TaskCensus {
 public:
  TaskCensus(Census& census, int attempt, int rank) : census_(census), task_(census.add_task(attempt, rank)) {}
  void count(const Position& position, const CallSite& call);
  // The collective call made last, if its rank goes on without its result: to be given to waits_for.
  std::optional<std::size_t> unawaited() const { return unawaited_; }
  // The rank waits for that call now.
  void waits_for(std::optional<std::size_t> call);

 private:
  Census& census_;
  TaskCalls& task_;
  std::optional<std::size_t> unawaited_;
};

struct FaultPlace {
  int rank = 0;
  std::int64_t step = 0;
  Phase phase = Phase::none;
  int nth = 1;
  auto operator<=>(const FaultPlace&) const = default;
};

// Every place at which a fault such as `like` fires: one of its kind, with its options (target, peer), its attempt (the
// first, where it says any), and its step, phase, operation and path where it names them. Its rank and nth do not
// count. In order, each once.
std::vector<FaultPlace> places_of(const FaultSpec& like, const Census& census);
inline std::vector<FaultPlace> places_of(FaultKind kind, const Census& census) {
  return places_of(FaultSpec{.kind = kind, .at = {}}, census);
}
// The fault `like` at that place.
FaultSpec placed(FaultSpec like, const FaultPlace& place);

}  // namespace firedrill
