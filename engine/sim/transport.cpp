#include "engine/sim/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sim/rank.h"

namespace firedrill::sim {
namespace {

std::string address_of(int attempt, int rank) { return fmt::format("sim:{}:{}", attempt, rank); }

}  // namespace

void RankTransport::clear() {
  messages_.clear();
  receivers_.clear();
  connected_ = false;
  aborted_ = false;
  closed_at_ = never;
  taken_ = {};
}

int RankTransport::rank() const { return rank_.number(); }
int RankTransport::world_size() const { return rank_.attempt().world_size(); }
std::string RankTransport::address() const { return address_of(rank_.attempt().number(), rank_.number()); }

RankTransport& RankTransport::peer_of(int peer) {
  FD_CHECK(peer >= 0 && peer < world_size(), "rank {} of {}", peer, world_size());
  return rank_.attempt().rank(peer).transport();
}

Status RankTransport::enter(Duration cost) {
  FD_TRY_VOID(rank_.enter_abortable(cost));
  if (aborted_) return abort_reason_;
  return {};
}

Status RankTransport::connect(const std::vector<std::string>& addresses, Time) {
  FD_TRY_VOID(enter(rank_.costs().latency_between_nodes));
  FD_CHECK(static_cast<int>(addresses.size()) == world_size(), "{} addresses for {} ranks", addresses.size(),
           world_size());
  for (int peer = 0; peer < world_size(); ++peer) {
    const std::string expected = address_of(rank_.attempt().number(), peer);
    const std::string& given = addresses[static_cast<std::size_t>(peer)];
    if (given != expected) {
      return Error{.code = Code::mismatch,
                   .message = fmt::format("'{}' is not the address of rank {}, '{}'", given, peer, expected)};
    }
  }
  connected_ = true;
  return {};
}

Status RankTransport::send(int peer, Tag tag, const Value& value, Time) {
  FD_TRY_VOID(enter(rank_.costs().send));
  FD_CHECK(connected_, "rank {} sends before it is connected", rank());
  RankTransport& to = peer_of(peer);
  const CostTable& costs = rank_.costs();
  const bool near = to.rank_.node() == rank_.node();
  Scheduler& scheduler = rank_.scheduler();
  const auto bytes = static_cast<std::int64_t>(value ? value.bytes_total() : 0);
  const Duration latency = scheduler.jittered(near ? costs.latency_in_node : costs.latency_between_nodes);
  Duration transfer = transfer_time(bytes, near ? costs.bandwidth_in_node : costs.bandwidth_between_nodes);
  if (LinkFault* const fault = rank_.attempt().link(rank(), peer)) {
    if (fault->cut) return {};
    transfer += fault->slower;
    if (fault->lose_every > 0 && ++fault->sent % fault->lose_every == 0) transfer += fault->again;
  }
  to.deliver({.from = rank(),
              .attempt = rank_.attempt().number(),
              .tag = tag,
              .sent = scheduler.now(),
              .arrival = scheduler.now() + latency + transfer,
              .value = value});
  return {};
}

void RankTransport::take_late(int from, int sent_in, Tag tag, const Value& value) {
  const Time now = rank_.scheduler().now();
  messages_.push_back({.from = from, .attempt = sent_in, .tag = tag, .sent = now, .arrival = now, .value = value});
}

bool RankTransport::may_take(const Message& message) const {
  const Attempt& attempt = rank_.attempt();
  if (message.attempt == attempt.number()) return true;
  return attempt.takes_message_of && attempt.takes_message_of(message.attempt);
}

void RankTransport::deliver(Message message) {
  for (const Receiver& receiver : receivers_) {
    if (receiver.from == message.from && receiver.tag == message.tag) {
      rank_.scheduler().wake(*receiver.fiber, message.arrival);
    }
  }
  messages_.push_back(std::move(message));
}

Result<Value> RankTransport::recv(int peer, Tag tag, Time deadline) {
  FD_TRY_VOID(enter(rank_.costs().send));
  FD_CHECK(connected_, "rank {} receives before it is connected", rank());
  const RankTransport& from = peer_of(peer);
  const Scheduler& scheduler = rank_.scheduler();
  for (;;) {
    const auto message = std::find_if(messages_.begin(), messages_.end(),
                                      [&](const Message& m) { return m.from == peer && m.tag == tag && may_take(m); });
    const bool there = message != messages_.end();
    if (there && message->arrival <= scheduler.now()) {
      Value value = std::move(message->value);
      taken_ = {.from = peer, .tag = tag, .under_way = message->arrival - message->sent};
      const auto& on_message = rank_.attempt().on_message;
      if (on_message) on_message(rank(), peer, message->attempt);
      messages_.erase(message);
      return value;
    }
    if (!there && scheduler.now() >= from.closed_at_) {
      return Error{.code = Code::aborted, .message = fmt::format("rank {} is gone; no more messages of it", peer)};
    }
    if (scheduler.now() >= deadline) {
      return Error{.code = Code::timeout,
                   .message = fmt::format("no message from rank {} with tag {} in time", peer, tag)};
    }
    FD_TRY_VOID(wait_for_message(peer, tag, std::min(deadline, there ? message->arrival : from.closed_at_)));
  }
}

Status RankTransport::wait_for_message(int peer, Tag tag, Time until) {
  Fiber& self = rank_.scheduler().current();
  receivers_.push_back({.from = peer, .tag = tag, .fiber = &self});
  Status waited = rank_.wait(
      until, {.what = "a message from rank {0} with tag {1}", .first = peer, .second = static_cast<std::int64_t>(tag)});
  std::erase_if(receivers_, [&self](const Receiver& receiver) { return receiver.fiber == &self; });
  if (waited && aborted_) return abort_reason_;
  return waited;
}

std::optional<Duration> RankTransport::under_way(int peer, Tag tag) const {
  if (taken_.from != peer || taken_.tag != tag) return std::nullopt;
  return taken_.under_way;
}

void RankTransport::abort(const Error& reason) {
  if (aborted_ || !rank_.open()) return;
  aborted_ = true;
  abort_reason_ = {.code = Code::aborted, .message = reason.message, .hint = reason.hint, .injected = reason.injected};
  Scheduler& scheduler = rank_.scheduler();
  for (const Receiver& receiver : receivers_) scheduler.wake(*receiver.fiber, scheduler.now());
  close_at(scheduler.now() + rank_.costs().failure_detection);
}

void RankTransport::close_at(Time time) {
  if (time >= closed_at_) return;
  closed_at_ = time;
  for (int peer = 0; peer < world_size(); ++peer) {
    RankTransport& other = peer_of(peer);
    for (const Receiver& receiver : other.receivers_) {
      if (receiver.from == rank()) rank_.scheduler().expire_at(*receiver.fiber, time);
    }
  }
}

}  // namespace firedrill::sim
