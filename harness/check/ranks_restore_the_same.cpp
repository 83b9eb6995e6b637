// ranks_restore_the_same: after a restart all ranks stand at the same point.
//
// Verified: in each attempt the ranks' decisions (found) are the same one after the other, and so are the checkpoints
// they restored; no rank starts fresh while another restores; values that two ranks both hold are equal after it.
// Not verified: values that one rank alone holds; resume_equals_golden does that.
#include <fmt/format.h>

#include "harness/check/all.h"

namespace firedrill {
namespace {

std::string id_in_words(const Case& run, const Event& event) {
  return event.name == 0 ? std::string("nothing") : std::string(run.history().text(event.name));
}

bool same_checkpoint(const Event& x, const Event& y) {
  const bool same_step = x.kind == EventKind::found ? x.a == y.a : x.step == y.step;
  return same_step && x.b == y.b && x.c == y.c && x.name == y.name;
}

// Compares the n-th event of each rank of an attempt with the n-th of the rank that came first.
class Comparison {
 public:
  Comparison(const Case& run, EventKind kind) : run_(run), kind_(kind) {}

  std::string run() {
    std::int32_t attempt = -1;
    for (const std::uint32_t position : run_.history().of(kind_)) {
      const Event& event = run_.event(position);
      if (event.rank < 0) continue;
      if (event.attempt != attempt) {
        attempt = event.attempt;
        firsts_.clear();
        counts_.clear();
      }
      const std::size_t rank = static_cast<std::size_t>(event.rank);
      if (rank >= counts_.size()) counts_.resize(rank + 1, 0);
      const std::size_t ordinal = counts_[rank]++;
      ++checked_;
      if (ordinal == firsts_.size()) {
        firsts_.push_back(position);
      } else if (std::string wrong = compare(run_.event(firsts_[ordinal]), event); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  std::int64_t checked() const { return checked_; }
  const std::string& doubt() const { return doubt_; }

 private:
  std::string compare(const Event& first, const Event& other) {
    if (!same_checkpoint(first, other)) {
      const std::string_view verb = kind_ == EventKind::found ? "chooses" : "restores";
      return fmt::format("attempt {}: rank {} {} {}, rank {} {} {}", other.attempt, first.rank, verb,
                         id_in_words(run_, first), other.rank, verb, id_in_words(run_, other));
    }
    if (kind_ != EventKind::restored) return {};
    const StateId a = run_.states().find(first.digest);
    const StateId b = run_.states().find(other.digest);
    if (a == no_state || b == no_state) {
      doubt_ = fmt::format("{}: the restored state was never described", place_of(a == no_state ? first : other));
      return {};
    }
    if (run_.states().agree(a, b)) return {};
    return fmt::format("attempt {}: ranks {} and {} restore {} with different values: {}", other.attempt, first.rank,
                       other.rank, id_in_words(run_, other), shared_difference(a, b));
  }

  std::string shared_difference(StateId a, StateId b) const {
    // Of names that only one side has nothing is asked here.
    std::string_view tensor;
    for (const StateTensor& left : run_.states().tensors(a)) {
      for (const StateTensor& right : run_.states().tensors(b)) {
        if (left.name != right.name || left.digest == right.digest) continue;
        const std::string_view name = run_.history().text(left.name);
        if (tensor.empty() || name < tensor) tensor = name;
      }
    }
    return fmt::format("tensor {}", tensor);
  }

  const Case& run_;
  EventKind kind_;
  std::vector<std::uint32_t> firsts_;
  std::vector<std::size_t> counts_;  // by rank
  std::int64_t checked_ = 0;
  std::string doubt_;
};

std::string mixed_start(const Case& run) {
  const auto fresh = run.history().of(EventKind::started_fresh);
  const auto restored = run.history().of(EventKind::restored);
  for (const std::uint32_t start : fresh) {
    for (const std::uint32_t restore : restored) {
      const Event& one = run.event(start);
      const Event& other = run.event(restore);
      if (one.attempt != other.attempt) continue;
      return fmt::format("attempt {}: rank {} starts fresh, rank {} restores {}", one.attempt, one.rank, other.rank,
                         id_in_words(run, other));
    }
  }
  return {};
}

}  // namespace

Verdict judge_ranks_restore_the_same(const Case& run) {
  Comparison found(run, EventKind::found);
  Comparison restored(run, EventKind::restored);
  std::string wrong = found.run();
  if (wrong.empty()) wrong = restored.run();
  if (wrong.empty()) wrong = mixed_start(run);
  const std::int64_t checked = found.checked() + restored.checked();
  if (!wrong.empty()) return Verdict::fail(checked, wrong);
  if (!restored.doubt().empty()) return Verdict::unknown(checked, restored.doubt());
  return Verdict::pass(checked);
}

}  // namespace firedrill
