#include "engine/comm/call_order.h"

#include <algorithm>
#include <utility>

namespace firedrill {

const CallOrder::Known* CallOrder::alike() const {
  const auto found = std::ranges::find_if(
      known_, [this](const Known& known) { return known.alike && known.calls.size() >= now_.size(); });
  return found == known_.end() ? nullptr : &*found;
}

std::optional<CallOrder::Item> CallOrder::due() const {
  const Known* const known = diverged_ ? nullptr : alike();
  if (known == nullptr || known->calls.size() == now_.size()) return std::nullopt;
  return known->calls[now_.size()];
}

std::optional<CallOrder::Item> CallOrder::due_first() const {
  if (known_.empty()) return std::nullopt;
  const Item& first = known_.front().calls.front();
  const bool all = std::ranges::all_of(known_, [&](const Known& known) { return known.calls.front() == first; });
  return all ? std::optional(first) : std::nullopt;
}

bool CallOrder::end_step() {
  if (now_.empty()) return false;
  bool diverges = false;
  const auto same = std::ranges::find_if(
      known_, [this](const Known& known) { return known.alike && known.calls.size() == now_.size(); });
  if (same != known_.end()) {
    std::rotate(known_.begin(), same, same + 1);
  } else {
    if (const auto left_out = due()) {
      divergence_ = Divergence{.due = left_out, .came = std::nullopt};
      diverges = true;
    }
    if (known_.size() == orders_kept) known_.pop_back();
    known_.insert(known_.begin(), Known{.calls = now_});
  }
  for (Known& known : known_) known.alike = true;
  now_.clear();
  diverged_ = false;
  return diverges;
}

void CallOrder::diverge(const Known& from, const Item& call) {
  diverged_ = true;
  expected_.assign(from.calls.begin() + std::ssize(now_), from.calls.end());
  divergence_ = Divergence{.due = expected_.empty() ? std::nullopt : std::optional(expected_.front()), .came = call};
  since_ = 0;
  left_out_ = !expected_.empty();
  repeated_ = !now_.empty() && now_.back() == call;
}

void CallOrder::follow(const Item& call) {
  const auto is = [&](std::size_t place) { return place < expected_.size() && expected_[place] == call; };
  left_out_ = left_out_ && is(since_ + 1);
  repeated_ = repeated_ && (since_ == 0 || is(since_ - 1));
  ++since_;
  divergence_->again = !repeated_ ? Again::no : left_out_ ? Again::perhaps : Again::yes;
}

bool CallOrder::note(const Item& call, bool begins) {
  // A step that the next one ended is told only by its first call: nobody had said that it was over.
  bool diverges = begins && end_step();
  const Known* const before = alike();
  for (Known& known : known_) {
    if (known.calls.size() <= now_.size() || known.calls[now_.size()] != call) known.alike = false;
  }
  if (!diverges && !diverged_ && before != nullptr && alike() == nullptr) {
    diverge(*before, call);
    diverges = true;
  }
  if (diverged_) follow(call);
  now_.push_back(call);
  return diverges;
}

}  // namespace firedrill
