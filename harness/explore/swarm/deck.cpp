#include "harness/explore/swarm/deck.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace firedrill {

void Deck::will_deal() {
  const std::lock_guard lock(mutex_);
  ++dealing_;
}

void Deck::deal(std::vector<PlannedTrial> drawn) {
  const std::lock_guard lock(mutex_);
  for (PlannedTrial& planned : drawn) hands_[planned.layout % hands_.size()].push_back(std::move(planned));
  for (std::deque<PlannedTrial>& hand : hands_) std::ranges::stable_sort(hand, {}, &PlannedTrial::ground);
  --dealing_;
  dealt_.notify_all();
}

std::vector<PlannedTrial> Deck::take_own(std::size_t thread) {
  const std::lock_guard lock(mutex_);
  return take_first(hands_[thread]);
}

std::vector<PlannedTrial> Deck::take(std::size_t thread, const std::function<bool()>& is_enough) {
  static constexpr std::chrono::milliseconds look_again{20};
  std::unique_lock lock(mutex_);
  while (!is_enough()) {
    if (!hands_[thread].empty()) return take_first(hands_[thread]);
    std::deque<PlannedTrial>& fullest = *std::ranges::max_element(hands_, {}, &std::deque<PlannedTrial>::size);
    if (!fullest.empty()) return take_last(fullest);
    if (dealing_ == 0) break;
    dealt_.wait_for(lock, look_again);
  }
  return {};
}

std::vector<PlannedTrial> Deck::take_first(std::deque<PlannedTrial>& hand) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(hand.size(), taken_at_once));
  std::vector<PlannedTrial> taken(std::make_move_iterator(hand.begin()), std::make_move_iterator(hand.begin() + count));
  hand.erase(hand.begin(), hand.begin() + count);
  return taken;
}

// Half of it at most, so that the thread whose it is keeps its own work.
std::vector<PlannedTrial> Deck::take_last(std::deque<PlannedTrial>& hand) {
  const auto count = static_cast<std::ptrdiff_t>(std::min((hand.size() + 1) / 2, taken_at_once));
  std::vector<PlannedTrial> taken(std::make_move_iterator(hand.end() - count), std::make_move_iterator(hand.end()));
  hand.erase(hand.end() - count, hand.end());
  return taken;
}

}  // namespace firedrill
