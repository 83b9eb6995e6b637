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
std::optional<CallOrder::Departure> CallOrder::close(const Step& next) {
  std::optional<Departure> departure;
  const auto same = std::ranges::find_if(
      known_, [this](const Known& known) { return known.alike && known.calls.size() == now_.size(); });
  if (same != known_.end()) {
    std::rotate(known_.begin(), same, same + 1);
  } else {
    if (const auto left_out = due()) departure = Departure{.due = left_out, .came = next, .late = true};
    if (known_.size() == orders_kept) known_.pop_back();
    known_.insert(known_.begin(), Known{.calls = now_});
  }
  for (Known& known : known_) known.alike = true;
  now_.clear();
  departed_ = false;
  return departure;
}

std::optional<CallOrder::Departure> CallOrder::note(const Step& call, bool begins) {
  std::optional<Departure> departure;
  if (begins && !now_.empty()) departure = close(call);
  const Known* const before = alike();
  const bool could_tell = !departed_ && before != nullptr;
  for (Known& known : known_) {
    if (known.calls.size() <= now_.size() || known.calls[now_.size()] != call) known.alike = false;
  }
  if (could_tell && alike() == nullptr) {
    departed_ = true;
    const bool over = before->calls.size() == now_.size();
    if (!departure) {
      departure = Departure{.due = over ? std::nullopt : std::optional(before->calls[now_.size()]),
                            .came = call,
                            .again = !now_.empty() && now_.back() == call};
    }
  }
  now_.push_back(call);
  return departure;
}

}  // namespace firedrill
