// RankTransport: messages between the ranks of one attempt, in memory, Values by reference. A message arrives after the
// latency of the link (same node or not) and its bytes at the link's bandwidth; messages of one (peer, tag) stay in
// order, others overtake. Each message says in which attempt it was sent, and one of another attempt that arrives late
// is never taken (unless Attempt::takes_message_of says so). Links may be disturbed (Attempt::disturb_link).
//
// What is on its way when its sender dies still arrives. A peer that waits for more is told `aborted`.
#pragma once

#include <string>
#include <vector>

#include "engine/seam/arrivals.h"
#include "engine/sim/fiber_pool.h"

namespace firedrill::sim {

class SimRank;

class RankTransport final : public Transport, public Arrivals {
 public:
  explicit RankTransport(SimRank& rank) : rank_(rank) {}

  int rank() const override;
  int world_size() const override;
  std::string address() const override;
  Status connect(const std::vector<std::string>& addresses, Time deadline) override;
  Status send(int peer, Tag tag, const Value& value, Time deadline) override;
  Result<Value> recv(int peer, Tag tag, Time deadline) override;
  void abort(const Error& reason) override;
  std::optional<Duration> under_way(int peer, Tag tag) const override;

  // A message of another attempt that has been on its way until now.
  void take_late(int from, int sent_in, Tag tag, const Value& value);
  // This rank sends nothing more; its peers see that from `time` on.
  void close_at(Time time);
  void clear();

 private:
  struct Message {
    int from = 0;
    int attempt = 0;  // of the sender
    Tag tag = 0;
    Time sent{0};
    Time arrival{0};
    Value value;
  };
  struct Taken {
    int from = -1;
    Tag tag = 0;
    Duration under_way{0};
  };
  struct Receiver {
    int from = 0;
    Tag tag = 0;
    Fiber* fiber = nullptr;
  };
  RankTransport& peer_of(int peer);
  Status enter(Duration cost);
  bool may_take(const Message& message) const;
  void deliver(Message message);
  Status wait_for_message(int peer, Tag tag, Time until);

  SimRank& rank_;
  std::vector<Message> messages_;    // sent and not yet taken, in the order sent
  std::vector<Receiver> receivers_;  // tasks of this rank that wait
  Taken taken_;                      // the last one
  bool connected_ = false;
  bool aborted_ = false;
  Error abort_reason_;
  Time closed_at_ = never;
};

}  // namespace firedrill::sim
