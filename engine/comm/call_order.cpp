#include "engine/comm/call_order.h"

#include <algorithm>
#include <utility>

namespace firedrill {

const CallOrder::Known* CallOrder::alike() const {
  const auto found = std::ranges::find_if(
      known_, [this](const Known& known) { return known.alike && known.calls.size() >= now_.size(); });
  return found == known_.end() ? nullptr : &*found;
}

std::optional<CallOrder::Step> CallOrder::due() const {
  const Known* const known = departed_ ? nullptr : alike();
  if (known == nullptr || known->calls.size() == now_.size()) return std::nullopt;
  return known->calls[now_.size()];
}

// The step is over: it is what one before was like, or a new sort.
bool CallOrder::close(const Step& next) {
  bool departs = false;
  const auto same = std::ranges::find_if(
      known_, [this](const Known& known) { return known.alike && known.calls.size() == now_.size(); });
  if (same != known_.end()) {
    std::rotate(known_.begin(), same, same + 1);
  } else {
    if (const auto left_out = due()) {
      departure_ = Departure{.due = left_out, .came = next, .late = true};
      departs = true;
    }
    if (known_.size() == orders_kept) known_.pop_back();
    known_.insert(known_.begin(), Known{.calls = now_});
  }
  for (Known& known : known_) known.alike = true;
  now_.clear();
  departed_ = false;
  return departs;
}

void CallOrder::depart(const Known& from, const Step& call) {
  expected_.assign(from.calls.begin() + std::ssize(now_), from.calls.end());
  departure_ = Departure{.due = expected_.empty() ? std::nullopt : std::optional(expected_.front()), .came = call};
  since_ = 0;
  left_out_ = !expected_.empty();
  repeated_ = !now_.empty() && now_.back() == call;
}

void CallOrder::follow_departure(const Step& call) {
  const auto is = [&](std::size_t place) { return place < expected_.size() && expected_[place] == call; };
  left_out_ = left_out_ && is(since_ + 1);
  repeated_ = repeated_ && (since_ == 0 || is(since_ - 1));
  ++since_;
  if (left_out_ || repeated_) departure_->again = !repeated_ ? Again::no : left_out_ ? Again::perhaps : Again::yes;
}

bool CallOrder::note(const Step& call, bool begins) {
  bool departs = begins && !now_.empty() && close(call);
  const Known* const before = alike();
  for (Known& known : known_) {
    if (known.calls.size() <= now_.size() || known.calls[now_.size()] != call) known.alike = false;
  }
  if (!departed_ && before != nullptr && alike() == nullptr) {
    departed_ = true;
    // Behind a call that the step before left out, nothing is told of this one.
    if (!departs) depart(*before, call);
    departs = true;
  }
  if (departed_ && !departure_->late) follow_departure(call);
  now_.push_back(call);
  return departs;
}

}  // namespace firedrill
