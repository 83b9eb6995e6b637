#include "engine/comm/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace firedrill {
namespace {

bool all_own_lanes(const Group& group) {
  return std::ranges::all_of(group.lanes, [](const LaneRange& lanes) { return lanes.count() > 0; });
}

// Of a reduction. A member without lanes knows neither type nor size, and then no member is asked for them.
Fingerprint print_of(const Group& group, std::span<const Value> lanes, ReduceOp reduce) {
  Fingerprint print{.reduce = reduce, .purpose = {}};
  if (lanes.empty() || !all_own_lanes(group)) return print;
  print.dtype = element_type_of(lanes.front());
  print.count = elements_of(lanes.front());
  return print;
}

// The fingerprint that most members have; of two equally many the first.
const Fingerprint& usual_of(const std::vector<Fingerprint>& prints) {
  return *std::ranges::max_element(prints, {},
                                   [&prints](const Fingerprint& print) { return std::ranges::count(prints, print); });
}

Error mismatch(std::string_view stream, std::span<const int> ranks, const std::vector<Fingerprint>& prints) {
  const Fingerprint& usual = usual_of(prints);
  std::string odd;
  for (std::size_t i = 0; i < prints.size(); ++i) {
    if (prints[i] == usual) continue;
    odd += fmt::format("{}rank {} has {}", odd.empty() ? "" : "; ", ranks[i], differences(prints[i], usual));
  }
  return Error{.code = Code::mismatch,
               .message = fmt::format("the members disagree about call {} of {}, {} at step {}: {}", usual.sequence,
                                      stream, describe(usual), usual.step, odd)};
}

}  // namespace

GuardedCollectives::Stream& GuardedCollectives::stream_of_group(const Group& group) {
  for (const auto& stream : streams_) {
    if (stream->group == group.id && stream->peer < 0) return *stream;
  }
  const auto number = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back(std::make_unique<Stream>(Stream{.number = number, .group = group.id, .name = stream_of(group)}));
  return *streams_.back();
}

GuardedCollectives::Stream& GuardedCollectives::stream_between(const Group& group, int peer, bool outgoing) {
  for (const auto& stream : streams_) {
    if (stream->group == group.id && stream->peer == peer && stream->outgoing == outgoing) return *stream;
  }
  const std::string name = outgoing ? stream_of(group, group.me, peer) : stream_of(group, peer, group.me);
  const auto number = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back(std::make_unique<Stream>(
      Stream{.number = number, .group = group.id, .peer = peer, .outgoing = outgoing, .name = name}));
  return *streams_.back();
}

const GuardedCollectives::Purpose& GuardedCollectives::kept(std::string_view purpose) {
  for (const auto& known : purposes_) {
    if (known->text == purpose) return *known;
  }
  const auto number = static_cast<std::uint32_t>(purposes_.size());
  purposes_.push_back(std::make_unique<Purpose>(
      Purpose{.number = number, .text = std::string(purpose), .digest = firedrill::digest_of(purpose)}));
  return *purposes_.back();
}

GuardedCollectives::Course* GuardedCollectives::course_of(Phase phase) {
  if (is_of_training(phase)) return &training_;
  return is_of_a_publish(phase) ? &publish_ : nullptr;
}

// Notes which call of the step it is, ahead of counting it.
void GuardedCollectives::follow(const Stream& stream, const Purpose& purpose, CollectiveOp op, std::int64_t elements) {
  const Position& position = parties_.position;
  Course* const own = course_of(position.phase);
  for (Course* const course : {&training_, &publish_}) {
    // The last that is kept may still be undecided.
    if (!course->divergences.empty()) course->divergences.back().calls = *course->order.divergence();
    if (course != own && course->order.end_step()) keep_divergence(*course, 0);
  }
  if (own == nullptr) return;
  const CallOrder::Item call{
      .stream = stream.number, .purpose = purpose.number, .elements = elements, .op = op, .phase = position.phase};
  const bool begins = position.step != own->step;
  if (own->order.note(call, begins)) keep_divergence(*own, stream.calls);
  own->step = position.step;
}

// In the step of the position.
void GuardedCollectives::keep_divergence(Course& course, std::int64_t came_sequence) {
  const CallOrder::Divergence& divergence = *course.order.divergence();
  const std::int64_t step = parties_.position.step;
  if (course.divergences.size() == 2) course.divergences.erase(course.divergences.begin());
  // What the step before left out shows behind it.
  course.divergences.push_back({.calls = divergence,
                                .due_step = divergence.came ? step : course.step,
                                .came_step = step,
                                .due_sequence = divergence.due ? streams_[divergence.due->stream]->calls : 0,
                                .came_sequence = came_sequence});
}

GuardedCollectives::Record& GuardedCollectives::issue(Stream& stream, CollectiveOp op, Fingerprint print,
                                                      const Call& call) {
  const Position& position = parties_.position;
  if (position.step != step_) {
    tell_step();
    step_ = position.step;
  }
  const Purpose& purpose = kept(call.purpose);
  follow(stream, purpose, op, print.count);
  print.op = op == CollectiveOp::recv ? CollectiveOp::send : op;
  print.sequence = stream.calls++;
  print.step = position.step;
  print.purpose = purpose.text;
  Record& record = ring_[issued_++ % ring_capacity];
  record = {
      .print = print, .stream = &stream, .digest = digest_of(print, purpose.digest), .op = op, .phase = position.phase};
  return record;
}

void GuardedCollectives::settle(Record& record) {
  record.completed = true;
  Stream& stream = *record.stream;
  ++stream.calls_in_step;
  stream.digest_of_step = DigestBuilder().add(stream.digest_of_step).add(record.digest).finish();
}

Error GuardedCollectives::give_up(Record& record, Error error) {
  // With a mismatch nobody was waited for.
  if (error.code != Code::mismatch) record.waited_for = parties_.waits.gave_up_on().value_or(-1);
  record.damaged = error.code == Code::corrupted;
  return error;
}

// Every member sees the fingerprints of all, so all come to the same end.
Status GuardedCollectives::compare(const Group& group, Record& record, const Call& call) {
  if (mode_ != Guard::check || group.size() == 1) return {};
  const Value own = encode(record.print);
  FD_TRY(const Value all, inner_.all_gather(group, own, call));
  // Mostly all have sent the same bytes, and nobody has to read them.
  record.compared = std::ranges::all_of(all.parts(), [&own](const Value& print) { return print.same_as(own); });
  if (record.compared) return {};
  std::vector<Fingerprint> prints;
  for (std::size_t i = 0; i < all.parts().size(); ++i) {
    const std::optional<Fingerprint> print = decode_fingerprint(all[i]);
    if (!print) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("rank {} sent data in call {} of {} where a fingerprint was due",
                                          group.ranks[i], record.print.sequence, record.stream->name)};
    }
    prints.push_back(*print);
  }
  const bool agree = std::ranges::all_of(prints, [&prints](const Fingerprint& one) { return one == prints.front(); });
  record.compared = agree;
  if (agree) return {};
  return mismatch(record.stream->name, group.ranks, prints);
}

template <class Inner>
auto GuardedCollectives::guarded(const Group& group, CollectiveOp op, const Fingerprint& print, const Call& call,
                                 Inner inner) -> decltype(inner()) {
  Record& record = issue(stream_of_group(group), op, print, call);
  if (Status agreed = compare(group, record, call); !agreed) return give_up(record, std::move(agreed).error());
  auto result = inner();
  if (!result) return give_up(record, std::move(result).error());
  settle(record);
  return result;
}

// A reduction on its way. Its record may have left the ring when it is finished; then it is finished all the same.
class GuardedCollectives::Watched final : public PendingReduction {
 public:
  Watched(GuardedCollectives& guard, std::unique_ptr<PendingReduction> inner)
      : guard_(guard), inner_(std::move(inner)), number_(guard.issued_ - 1), record_(guard.newest()) {}
  Status advance() override {
    Status advanced = inner_->advance();
    if (!advanced) return guard_.give_up(record(), std::move(advanced).error());
    return advanced;
  }
  Result<Value> finish() override {
    Result<Value> result = inner_->finish();
    if (!result) return guard_.give_up(record(), std::move(result).error());
    guard_.settle(record());
    return result;
  }

 private:
  Record& record() {
    const bool kept = guard_.issued_ - number_ <= ring_capacity;
    return kept ? guard_.ring_[number_ % ring_capacity] : record_;
  }

  GuardedCollectives& guard_;
  std::unique_ptr<PendingReduction> inner_;
  std::uint64_t number_;
  Record record_;
};

Result<std::unique_ptr<PendingReduction>> GuardedCollectives::watched(
    Result<std::unique_ptr<PendingReduction>> started) {
  if (!started) return give_up(newest(), std::move(started).error());
  return Result<std::unique_ptr<PendingReduction>>(std::make_unique<Watched>(*this, *std::move(started)));
}

Result<std::unique_ptr<PendingReduction>> GuardedCollectives::start_all_reduce(const Group& group,
                                                                               std::span<const Value> lanes,
                                                                               ReduceOp op, const Call& call) {
  Record& record = issue(stream_of_group(group), CollectiveOp::all_reduce, print_of(group, lanes, op), call);
  if (Status agreed = compare(group, record, call); !agreed) return give_up(record, std::move(agreed).error());
  return watched(inner_.start_all_reduce(group, lanes, op, call));
}

Result<std::unique_ptr<PendingReduction>> GuardedCollectives::start_reduce_scatter(const Group& group,
                                                                                   std::span<const Value> lanes,
                                                                                   ReduceOp op, const Call& call) {
  Record& record = issue(stream_of_group(group), CollectiveOp::reduce_scatter, print_of(group, lanes, op), call);
  if (Status agreed = compare(group, record, call); !agreed) return give_up(record, std::move(agreed).error());
  return watched(inner_.start_reduce_scatter(group, lanes, op, call));
}

Result<Value> GuardedCollectives::all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                             const Call& call) {
  return guarded(group, CollectiveOp::all_reduce, print_of(group, lanes, op), call,
                 [&] { return inner_.all_reduce(group, lanes, op, call); });
}

Result<Value> GuardedCollectives::reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                                 const Call& call) {
  return guarded(group, CollectiveOp::reduce_scatter, print_of(group, lanes, op), call,
                 [&] { return inner_.reduce_scatter(group, lanes, op, call); });
}

Result<Value> GuardedCollectives::all_gather(const Group& group, const Value& mine, const Call& call) {
  // Members may give different things.
  return guarded(group, CollectiveOp::all_gather, {}, call, [&] { return inner_.all_gather(group, mine, call); });
}

Result<Value> GuardedCollectives::broadcast(const Group& group, const Value& value, int root, const Call& call) {
  return guarded(group, CollectiveOp::broadcast, {.root = root, .purpose = {}}, call,
                 [&] { return inner_.broadcast(group, value, root, call); });
}

Status GuardedCollectives::barrier(const Group& group, const Call& call) {
  return guarded(group, CollectiveOp::barrier, {}, call, [&] { return inner_.barrier(group, call); });
}

Result<Value> GuardedCollectives::all_to_all(const Group& group, std::span<const Value> to, const Call& call) {
  return guarded(group, CollectiveOp::all_to_all, {}, call, [&] { return inner_.all_to_all(group, to, call); });
}

Status GuardedCollectives::send(const Group& group, int peer, const Value& value, const Call& call) {
  const Fingerprint print{.dtype = element_type_of(value), .count = elements_of(value), .purpose = {}};
  Record& record = issue(stream_between(group, peer, true), CollectiveOp::send, print, call);
  const bool check = mode_ == Guard::check;
  Status sent = inner_.send(group, peer, check ? Value::pack({encode(record.print), value}) : value, call);
  if (!sent) return give_up(record, std::move(sent).error());
  settle(record);
  return sent;
}

Result<Value> GuardedCollectives::recv(const Group& group, int peer, const Call& call) {
  Record& record = issue(stream_between(group, peer, false), CollectiveOp::recv, {}, call);
  Result<Value> received = inner_.recv(group, peer, call);
  if (!received) return give_up(record, std::move(received).error());
  const Value message = std::move(*received);  // the sender's fingerprint names its purpose in here
  Value value = message;
  std::optional<Fingerprint> of_sender;
  if (mode_ == Guard::check && message && message.is_pack() && message.parts().size() == 2) {
    of_sender = decode_fingerprint(message[0]);
    value = message[1];
  }
  record.print.dtype = element_type_of(value);
  record.print.count = elements_of(value);
  record.digest = digest_of(record.print, kept(call.purpose).digest);
  if (mode_ == Guard::check && of_sender != record.print) {
    const auto member = static_cast<std::size_t>(peer);
    record.waited_for = group.ranks[member];
    const std::vector<int> ranks = {group.ranks[static_cast<std::size_t>(group.me)], group.ranks[member]};
    return mismatch(record.stream->name, ranks, {record.print, of_sender.value_or(Fingerprint{.purpose = "data"})});
  }
  settle(record);
  return value;
}

void GuardedCollectives::abort(const Error& reason) {
  if (!gave_up_at_) gave_up_at_ = parties_.position;
  inner_.abort(reason);
}

void GuardedCollectives::finish(bool well) {
  if (well) return tell_step();
  if (issued_ > 0 && !newest().completed && newest().waited_for < 0) {
    newest().waited_for = parties_.waits.waits_for().value_or(-1);
  }
  const std::uint64_t kept_calls = std::min<std::uint64_t>(issued_, ring_capacity);
  for (std::uint64_t i = issued_ - kept_calls; i < issued_; ++i) tell(ring_[i % ring_capacity]);
  if (gave_up_at_) tell_abort();
  tell_divergences(training_);
  tell_divergences(publish_);
}

void GuardedCollectives::tell_step() {
  for (const auto& stream : streams_) {
    if (stream->calls_in_step == 0) continue;
    Event event = event_at(EventKind::calls, step_, Phase::none);
    event.a = std::exchange(stream->calls_in_step, 0);
    event.name = parties_.observer.intern(stream->name);
    event.digest = std::exchange(stream->digest_of_step, {});
    parties_.observer.event(event);
  }
}

// See EventKind::call_record.
std::int64_t GuardedCollectives::standing_of(const Record& record) {
  constexpr std::int64_t compared = 65536;
  constexpr std::int64_t damaged = 131072;
  if (record.completed) return 1;
  if (record.waited_for < 0) return record.compared ? 2 : 0;
  return -1 - record.waited_for - (record.compared ? compared : 0) - (record.damaged ? damaged : 0);
}

void GuardedCollectives::tell(const Record& record) {
  Event event = event_at(EventKind::call_record, record.print.step, record.phase);
  event.a = record.print.sequence;
  event.b = record.print.count;
  event.c = standing_of(record);
  event.name = parties_.observer.intern(record.stream->name);
  Fingerprint shown = record.print;
  shown.op = record.op;
  event.detail = parties_.observer.intern(describe(shown));
  event.digest = record.digest;
  parties_.observer.event(event);
}

void GuardedCollectives::tell_call(const CallOrder::Item& call, std::int64_t step, std::int64_t sequence,
                                   std::int64_t standing) {
  Event event = event_at(EventKind::divergence, step, call.phase);
  event.a = sequence;
  event.b = standing;
  event.name = parties_.observer.intern(streams_[call.stream]->name);
  event.detail = parties_.observer.intern(fmt::format("{} {}", to_string(call.op), purposes_[call.purpose]->text));
  parties_.observer.event(event);
}

void GuardedCollectives::tell_abort() {
  Event event = event_at(EventKind::call_record, gave_up_at_->step, gave_up_at_->phase);
  event.a = -1;
  event.detail = parties_.observer.intern("abort");
  parties_.observer.event(event);
  const Course* const course = course_of(gave_up_at_->phase);
  if (course == nullptr) return;
  const auto due = gave_up_at_->step == course->step ? course->order.due() : course->order.due_first();
  if (due && due->phase == gave_up_at_->phase) tell_call(*due, gave_up_at_->step, streams_[due->stream]->calls, 0);
}

// Of the last step and the one before: whoever goes astray can be a step ahead.
void GuardedCollectives::tell_divergences(Course& course) {
  if (!course.divergences.empty()) course.divergences.back().calls = *course.order.divergence();
  for (const Diverged& diverged : course.divergences) {
    if (diverged.came_step + 1 >= course.step) tell_divergence(diverged);
  }
}

// See EventKind::divergence.
void GuardedCollectives::tell_divergence(const Diverged& diverged) {
  const auto& [due, came, again] = diverged.calls;
  if (due) tell_call(*due, diverged.due_step, diverged.due_sequence, 1);
  if (came) tell_call(*came, diverged.came_step, diverged.came_sequence, 2 + static_cast<std::int64_t>(again));
}

Event GuardedCollectives::event_at(EventKind kind, std::int64_t step, Phase phase) const {
  return Event{.kind = kind,
               .phase = phase,
               .rank = static_cast<std::int16_t>(parties_.position.rank),
               .attempt = parties_.position.attempt,
               .step = step};
}

}  // namespace firedrill
