// GuardedCollectives: watches that all members of a group issue the same calls in the same order. One for each task of
// a rank; the layout's `guard` says how much it does, and with `off` it is not there at all.
//
//   record  keeps the last calls (ring_capacity) as records of fixed size, without an allocation for a call of a step
//           like those before, and tells for each step and stream how many calls were completed and the digest of their
//           fingerprints (`calls`). It learns in which order the task issues those of training, and those of a
//           publish, and tells where it diverged from that (`divergence`).
//   check   does that, and before data moves the members exchange the call's fingerprint over a gather of their own. If
//           one differs, the call ends on every member with `mismatch`, which names the odd rank, the operation, the
//           sequence and each field that differs. What one member sends another carries its fingerprint with it.
//
// Threads: the task's. Errors: mismatch, and those of the collectives inside. Results are never changed.
// What it does not do: end waits (deadlines do) or look at payloads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/call_order.h"
#include "engine/comm/fingerprint.h"
#include "engine/comm/noted_transport.h"
#include "engine/job/layout.h"
#include "engine/seam/collectives.h"
#include "engine/seam/observer.h"
#include "engine/seam/position.h"

namespace firedrill {

class GuardedCollectives final : public ForwardingCollectives {
 public:
  static constexpr std::size_t ring_capacity = 64;  // calls that are kept

  struct Parties {
    const Position& position;
    Observer& observer;
    const NotedTransport& waits;  // below `inner`
  };
  // `mode`: record or check.
  GuardedCollectives(Collectives& inner, Guard mode, const Parties& parties)
      : ForwardingCollectives(inner), mode_(mode), parties_(parties) {}

  Result<Value> all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op, const Call& call) override;
  Result<Value> reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                               const Call& call) override;
  // Compared when they start; completed when they are finished.
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
  // The task gives up: told with its records, as a `call_record` of no call, and the call that was due.
  void abort(const Error& reason) override;

  // The task has ended. Well: tells the calls of its last step. Not well: gives the records of its last calls, each as
  // a `call_record`, oldest first; and where it diverged in its last step or the one before.
  void finish(bool well);

 private:
  struct Stream {
    std::uint32_t number = 0;  // in `streams_`
    std::uint32_t group = 0;
    int peer = -1;  // index in the group, of a stream between two
    bool outgoing = false;
    std::string name;
    std::int64_t calls = 0;
    std::int64_t calls_in_step = 0;
    Digest digest_of_step;
  };
  struct Purpose {
    std::uint32_t number = 0;  // in `purposes_`
    std::string text;
    Digest digest;
  };
  struct Diverged {
    CallOrder::Divergence calls;
    std::int64_t due_step = 0;
    std::int64_t came_step = 0;
    std::int64_t due_sequence = 0;
    std::int64_t came_sequence = 0;
  };
  // The order of one kind of work, of which each step has its calls.
  struct Course {
    CallOrder order;
    std::int64_t step = 0;              // of the last call
    std::vector<Diverged> divergences;  // the last two
  };
  class Watched;
  struct Record {
    Fingerprint print;  // its purpose points into `purposes_`
    Stream* stream = nullptr;
    Digest digest;
    CollectiveOp op = CollectiveOp::barrier;  // recv where the fingerprint, which both ends share, says send
    Phase phase = Phase::none;
    bool completed = false;
    int waited_for = -1;    // a rank
    bool compared = false;  // the members had agreed about it
    bool damaged = false;   // with waited_for: what came from there was not what had been sent
  };

  Stream& stream_of_group(const Group& group);
  Stream& stream_between(const Group& group, int peer, bool outgoing);
  const Purpose& kept(std::string_view purpose);
  void follow(const Stream& stream, const Purpose& purpose, CollectiveOp op, std::int64_t elements);
  Course* course_of(Phase phase);
  void keep_divergence(Course& course, std::int64_t came_sequence);
  Record& issue(Stream& stream, CollectiveOp op, Fingerprint print, const Call& call);
  Result<std::unique_ptr<PendingReduction>> watched(Result<std::unique_ptr<PendingReduction>> started);
  void settle(Record& record);
  Error give_up(Record& record, Error error);
  Status compare(const Group& group, Record& record, const Call& call);
  template <class Inner>
  auto guarded(const Group& group, CollectiveOp op, const Fingerprint& print, const Call& call, Inner inner)
      -> decltype(inner());
  Record& newest() { return ring_[(issued_ - 1) % ring_capacity]; }
  void tell_step();
  static std::int64_t standing_of(const Record& record);
  void tell(const Record& record);
  void tell_abort();
  void tell_divergences(Course& course);
  void tell_divergence(const Diverged& diverged);
  void tell_call(const CallOrder::Item& call, std::int64_t step, std::int64_t sequence, std::int64_t standing);
  Event event_at(EventKind kind, std::int64_t step, Phase phase) const;

  Guard mode_;
  Parties parties_;
  std::int64_t step_ = 0;                         // that calls_in_step speak of
  std::vector<std::unique_ptr<Stream>> streams_;  // few: found by walking
  std::vector<std::unique_ptr<Purpose>> purposes_;
  std::array<Record, ring_capacity> ring_;
  std::uint64_t issued_ = 0;
  Course training_;
  Course publish_;
  std::optional<Position> gave_up_at_;
};

}  // namespace firedrill
