// Deck: plans that were drawn ahead, dealt to the threads by what they compute: those of one layout go to one thread,
// so that no two threads fill their memos with the same results. A thread takes its own in the order of their grounds
// (job and layouts), some at a time; one that has none left, when nothing more is drawn, takes from the end of the
// fullest.
//
// Which thread runs a plan decides nothing but the time it takes. Threads: any. Errors: none.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "harness/explore/swarm/swarm.h"

namespace firedrill {

struct PlannedTrial {
  std::uint64_t number = 0;
  bool from_corpus = false;
  Drawn drawn;
  std::string ground;      // Swarm::ground_of
  std::size_t layout = 0;  // Swarm::layout_number
};

class Deck {
 public:
  static constexpr std::size_t taken_at_once = 128;

  explicit Deck(std::size_t threads) : hands_(threads) {}

  // Before a thread draws what it will deal: until then nobody takes an empty deck for the end.
  void will_deal();
  // What was drawn, perhaps nothing.
  void deal(std::vector<PlannedTrial> drawn);
  // The next ones of this thread, or, when nobody deals any more, some of another's. Waits while somebody draws and
  // there is nothing else to do, unless `is_enough` says so. Empty: draw more, or end.
  std::vector<PlannedTrial> take(std::size_t thread, const std::function<bool()>& is_enough);
  // The same without others' and without waiting.
  std::vector<PlannedTrial> take_own(std::size_t thread);

 private:
  std::vector<PlannedTrial> take_first(std::deque<PlannedTrial>& hand);
  std::vector<PlannedTrial> take_last(std::deque<PlannedTrial>& hand);

  std::mutex mutex_;
  std::condition_variable dealt_;
  std::vector<std::deque<PlannedTrial>> hands_;  // by thread, in the order of the grounds
  int dealing_ = 0;                              // threads that draw now
};

}  // namespace firedrill
