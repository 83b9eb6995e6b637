// Accounting: where the time of one task of a rank goes, by phase and by group, what it sends, and how long it waits
// for peers; in the phases of a training step also by peer and direction (group `link`, operation `to 3`, `from 3`: how
// long sending took, or how long the peer's messages were under way, where the transport can tell; each as the lower
// quartile of the messages times their number, since what else keeps a machine busy only ever adds to some of them).
// Told as events once per step, when the next one begins: time_spent and exchanged.
//
// Decorators around the outermost collectives and transport of the task, and a listener of its Position. They read the
// clock, which costs no virtual time, and change nothing: no bit, no call, no order. Time inside a call counts for the
// phase and for the group; waiting is the time in which a receive was not done.
//
// Threads: the task's. Errors: none of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/seam/arrivals.h"
#include "engine/seam/clock.h"
#include "engine/seam/collectives.h"
#include "engine/seam/observer.h"
#include "engine/seam/position.h"
#include "engine/seam/transport.h"

namespace firedrill {

enum class CallKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  all_to_all,
  send,
  recv
};
std::string_view to_string(CallKind kind);

class Account final : public PhaseListener {
 public:
  // Listens to `position` until it goes. `idles`: the task waits between its phases (a second task), which is no work.
  Account(const Clock& clock, Position& position, Observer& observer, bool idles = false);
  ~Account() override { position_.listener = nullptr; }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  void phase_ends() override;
  // Tells what was not told yet.
  void close();

  // For the decorators: a call of a group goes on while a Scope of its account lives.
  using Entry = std::size_t;
  Entry entry(const Group& group, CallKind kind);
  class Scope {
   public:
    Scope(Account& account, Entry entry);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Account& account_;
    Entry entry_;
    Time began_;
  };
  void count_call(Entry entry) { ++exchanges_[entry].calls; }
  // A message to or from a peer, and what the task's call of it took.
  void sent(int peer, std::int64_t bytes, Duration time);
  void received(int peer, std::int64_t bytes, Duration time, std::optional<Duration> under_way);
  Time now() const { return clock_.now(); }

 private:
  struct Spent {
    Duration time{0};
    Duration waiting{0};
  };
  struct Exchanged {
    std::uint32_t group;
    CallKind kind;
    NameId name;
    NameId operation;
    std::int64_t calls = 0;
    std::int64_t bytes = 0;
    Spent spent;
  };
  struct LinkUse {
    std::int64_t bytes = 0;
    std::vector<Duration> times;  // one for each message
  };
  struct Link {
    NameId words = 0;  // "to 3"
    std::array<LinkUse, phase_count> by_phase;
  };
  enum class Way : std::uint8_t { to, from };
  static constexpr Entry none = ~Entry{0};

  void book();
  void tell();
  void tell_links();
  void use(Way way, int peer, std::int64_t bytes, Duration time);
  void tell_pipeline();
  void tell(EventKind kind, NameId name, NameId detail, std::int64_t a, std::int64_t b, std::int64_t c);
  Spent& of(Phase phase) { return phases_[static_cast<std::size_t>(phase)]; }

  const Clock& clock_;
  Position& position_;
  Observer& observer_;
  const bool idles_;
  std::int64_t step_ = 0;  // whose account this is
  Time mark_;              // everything before it is booked
  std::array<Spent, phase_count> phases_;
  std::vector<Exchanged> exchanges_;  // few: found by walking; kept from step to step
  std::map<std::pair<int, Way>, Link> links_;
  Entry current_ = none;
  bool ran_forward_ = false;
  Time forward_began_{0};
  Time backward_ended_{0};
};

class AccountingTransport final : public ForwardingTransport {
 public:
  // `arrivals`: of the messages of `inner`; nullptr: nobody can tell.
  AccountingTransport(Transport& inner, Account& account, const Arrivals* arrivals)
      : ForwardingTransport(inner), account_(account), arrivals_(arrivals) {}
  Status send(int peer, Tag tag, const Value& value, Time deadline) override;
  Result<Value> recv(int peer, Tag tag, Time deadline) override;

 private:
  Account& account_;
  const Arrivals* arrivals_;
};

class AccountingCollectives final : public ForwardingCollectives {
 public:
  AccountingCollectives(Collectives& inner, Account& account) : ForwardingCollectives(inner), account_(account) {}
  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override;
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override;
  Result<std::unique_ptr<PendingReduction>> start_all_reduce(const Group& group, std::span<const Value> lanes,
                                                             ReduceOp op, const Call& call) override;
  Result<std::unique_ptr<PendingReduction>> start_reduce_scatter(const Group& group, std::span<const Value> lanes,
                                                                 ReduceOp op, const Call& call) override;
  Result<Value> all_gather(const Group& group, const Value& mine, const Call& call) override;
  Result<Value> broadcast(const Group& group, const Value& value, int root, const Call& call) override;
  Status barrier(const Group& group, const Call& call) override;
  Result<Value> all_to_all(const Group& group, std::span<const Value> to, const Call& call) override;
  Status send(const Group& group, int peer, const Value& value, const Call& call) override;
  Result<Value> recv(const Group& group, int peer, const Call& call) override;

 private:
  Account& account_;
};

}  // namespace firedrill
