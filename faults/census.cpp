#include "faults/census.h"

#include <algorithm>
#include <array>
#include <utility>

#include "faults/damage.h"
#include "faults/trigger.h"

namespace firedrill {
namespace {

// A counted call as a trigger looks at it.
class Seen {
 public:
  explicit Seen(const Census& census) : census_(census) {}

  const CallSite& site(const CountedCall& call) {
    site_ = {.op = call.op, .file_op = call.file_op, .kernel = call.kernel};
    if (call.path >= 0) site_.path = census_.path(call.path);
    if (call.second >= 0) site_.second_path = census_.path(call.second);
    if (call.op == SeamOp::collective) {
      CollectiveCall& made = call.alone ? alone_ : together_;
      made.op = call.collective;
      site_.collective = &made;
    }
    if (call.op == SeamOp::send || call.op == SeamOp::recv) {
      message_.peer = call.peer;
      site_.message = &message_;
    }
    if (call.op == SeamOp::send) site_.value = call.has_bytes ? &bytes_ : &nothing_;
    return site_;
  }

 private:
  const Census& census_;
  Group one_{.name = {}, .ranks = {0}, .me = 0};
  Group two_{.name = {}, .ranks = {0, 1}, .me = 0};
  CollectiveCall alone_{.group = one_};
  CollectiveCall together_{.group = two_};
  MessageCall message_;
  Value bytes_ = Value::copy_of("bytes");
  Value nothing_;
  CallSite site_;
};

// A place as a number that sorts as places do: far faster than they.
constexpr int nth_bits = 20;
constexpr int phase_bits = 4;
constexpr int step_bits = 24;
static_assert(phase_count <= 1 << phase_bits);

std::uint64_t packed(const FaultPlace& place) {
  FD_CHECK(place.step >> step_bits == 0 && place.nth >> nth_bits == 0,
           "call {} of step {} is beyond what a census holds", place.nth, place.step);
  std::uint64_t word = static_cast<std::uint64_t>(place.rank);
  word = word << step_bits | static_cast<std::uint64_t>(place.step);
  word = word << phase_bits | static_cast<std::uint64_t>(place.phase);
  return word << nth_bits | static_cast<std::uint64_t>(place.nth);
}

FaultPlace unpacked(std::uint64_t word) {
  const auto take = [&word](int bits) {
    const std::uint64_t low = word & ((std::uint64_t{1} << bits) - 1);
    word >>= bits;
    return low;
  };
  FaultPlace place;
  place.nth = static_cast<int>(take(nth_bits));
  place.phase = static_cast<Phase>(take(phase_bits));
  place.step = static_cast<std::int64_t>(take(step_bits));
  place.rank = static_cast<int>(word);
  return place;
}

}  // namespace

std::int32_t Census::number_of(std::string_view path) {
  if (const auto known = numbers_.find(path); known != numbers_.end()) return known->second;
  paths_.emplace_back(path);
  return numbers_[paths_.back()] = static_cast<std::int32_t>(paths_.size()) - 1;
}

std::int64_t Census::calls() const {
  std::int64_t calls = 0;
  for (const TaskCalls& task : tasks_) calls += std::ssize(task.calls);
  return calls;
}

void Census::shrink() {
  for (TaskCalls& task : tasks_) task.calls.shrink_to_fit();
}

void TaskCensus::count(const Position& position, const CallSite& call) {
  CountedCall counted{.step = static_cast<std::int32_t>(position.step),
                      .phase = position.phase,
                      .op = call.op,
                      .file_op = call.file_op,
                      .kernel = call.kernel};
  if (!call.path.empty()) counted.path = census_.number_of(call.path);
  if (!call.second_path.empty()) counted.second = census_.number_of(call.second_path);
  if (call.message != nullptr) counted.peer = call.message->peer;
  if (call.op == SeamOp::send && call.value != nullptr) counted.has_bytes = can_be_damaged(*call.value);
  if (call.collective != nullptr) {
    counted.collective = call.collective->op;
    counted.alone = call.collective->group.size() == 1;
    if (unawaited_) task_.calls[*unawaited_].overtaken = true;
    unawaited_.reset();
    if (call.collective->can_be_held) unawaited_ = task_.calls.size();
  }
  task_.calls.push_back(counted);
}

void TaskCensus::waits_for(std::optional<std::size_t> call) {
  if (call && call == unawaited_) unawaited_.reset();
}

std::vector<FaultPlace> places_of(const FaultSpec& like, const Census& census) {
  std::vector<std::uint64_t> words;  // places
  Seen seen(census);
  std::array<bool, seam_op_count> possible{};  // most calls are none of the kind's
  for (int op = 0; op < seam_op_count; ++op) {
    possible[static_cast<std::size_t>(op)] = can_be_about(like.kind, static_cast<SeamOp>(op));
  }
  FaultSpec any = like;
  any.at.attempt = like.at.attempt.value_or(1);
  any.at.nth = 1;
  any.times = 0;
  for (const TaskCalls& task : census.tasks()) {
    if (task.attempt != any.at.attempt) continue;
    any.at.rank = task.rank;
    Trigger trigger(any, 0);
    for (const CountedCall& call : task.calls) {
      if (!possible[static_cast<std::size_t>(call.op)]) continue;
      const Position position{.attempt = task.attempt, .rank = task.rank, .step = call.step, .phase = call.phase};
      if (!trigger.hit(position, seen.site(call))) continue;
      // Only a call that another one comes ahead of can be held back.
      if (like.kind == FaultKind::reorder_calls && !call.overtaken) continue;
      words.push_back(
          packed({.rank = task.rank, .step = call.step, .phase = call.phase, .nth = trigger.counted(call.phase)}));
    }
  }
  std::vector<FaultPlace> places;
  places.reserve(words.size());
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  for (const std::uint64_t word : words) places.push_back(unpacked(word));
  return places;
}

FaultSpec placed(FaultSpec like, const FaultPlace& place) {
  like.at.rank = place.rank;
  like.at.step = place.step;
  like.at.phase = place.phase;
  like.at.nth = place.nth;
  return like;
}

}  // namespace firedrill
