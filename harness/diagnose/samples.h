// Samples: what the history of a run says of single steps of its ranks, before figures.cpp makes typical figures of it.
// Times are nanoseconds. Used by figures.cpp alone.
#pragma once

#include "harness/diagnose/figures.h"

namespace firedrill::samples {

// What one rank did in one step that it completed. A rank that is killed behind its last phase of training leaves no
// account of the step: nothing is known of its times, which is not the same as that they were nothing.
struct Step {
  bool told = false;  // the account of its training
  bool save_told = false;
  bool saved = false;  // to its end: of a save that was cut short the dear operations may be missing
  std::array<PartOfRank, step_parts.size()> parts;
  std::int64_t total = 0;  // of training
  std::int64_t save = 0;
  std::int64_t file_changes = 0;
  std::int64_t window = 0;  // of its pipeline
  std::int64_t idle = 0;
};

using At = std::pair<int, std::int64_t>;  // attempt, step
template <class T>
using BySteps = std::map<At, T>;

// Of one message, in one phase of a step; how many there were.
struct Times {
  std::int64_t each = 0;
  std::int64_t messages = 0;
};

// Times of one message, by the phase of a step in which they are sent: messages of one phase are alike.
class MessageTimes {
 public:
  void add(At at, Phase phase, Times times) { phases_[phase][at] = times; }
  void leave_out_from(At at) {
    for (auto& [phase, steps] : phases_) steps.erase(steps.lower_bound(at), steps.end());
  }
  // Of the typical step, over all messages.
  std::int64_t typical() const {
    double time = 0;
    std::int64_t messages = 0;
    for (const auto& [phase, steps] : phases_) {
      std::vector<std::int64_t> each;
      std::int64_t of_phase = 0;
      for (const auto& [at, times] : steps) {
        each.push_back(times.each);
        of_phase += times.messages;
      }
      time += static_cast<double>(typical_of(each)) * static_cast<double>(of_phase);
      messages += of_phase;
    }
    return static_cast<std::int64_t>(time / static_cast<double>(std::max<std::int64_t>(1, messages)));
  }

 private:
  std::map<Phase, BySteps<Times>> phases_;
};

// What one rank sent to a peer, and had from it.
struct Talk {
  struct Sent {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  BySteps<Sent> sent;
  MessageTimes sending;    // to the peer
  MessageTimes under_way;  // from the peer
  void leave_out(At from) {
    sent.erase(sent.lower_bound(from), sent.end());
    sending.leave_out_from(from);
    under_way.leave_out_from(from);
  }
  Sent all() const {
    Sent sum;
    for (const auto& [at, one] : sent) {
      sum.messages += one.messages;
      sum.bytes += one.bytes;
    }
    return sum;
  }
};

struct Calls {
  std::int64_t time = 0;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  std::int64_t reductions = 0;
  std::int64_t reduced_bytes = 0;
};

template <class T, class Get>
std::vector<std::int64_t> each(const BySteps<T>& steps, Get get) {
  std::vector<std::int64_t> samples;
  for (const auto& [at, one] : steps) samples.push_back(get(one));
  return samples;
}

}  // namespace firedrill::samples
