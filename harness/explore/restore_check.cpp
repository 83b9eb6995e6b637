#include "harness/explore/restore_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/comm/collectives_over_transport.h"
#include "engine/seam/silent_observer.h"
#include "engine/train/state.h"
#include "faults/persistence/recording.h"

namespace firedrill {
namespace {

constexpr EventId begin_event = 1;

sim::CostTable free_of_charge() {
  sim::CostTable costs;
  costs.latency_in_node = costs.latency_between_nodes = costs.send = Duration{0};
  costs.bandwidth_in_node = costs.bandwidth_between_nodes = costs.file_bandwidth = 0;
  costs.file_operation = costs.file_sync = Duration{0};
  costs.kernel.fill(Duration{0});
  return costs;
}

// Whether a failed check stands in the harness or the faults. Such a one says nothing about the code under test, unlike
// one of the engine or of a mutant.
bool is_of_the_harness(std::string_view failure) {
  return failure.starts_with("faults/") ||
         (failure.starts_with("harness/") && !failure.starts_with("harness/mutants/"));
}

// Bytes that no training leaves: NaN in each float, negative in each counter.
Value garbage_of(const StateGroup& group) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(group.count) * size_of(group.dtype), std::byte{0xFF});
  Value garbage = Value::copy_of(group.dtype, {group.count}, bytes);
  garbage.digest();  // known from now on
  return garbage;
}

}  // namespace

// What one rank's restored state was when it was compared tensor by tensor; the same digest is not compared again.
struct RestoreCheck::Compared {
  std::size_t rank = 0;
  std::int64_t step = 0;
  Digest state;
  std::string difference;         // empty: equal
  std::set<std::string> tensors;  // that it held
};

class RestoreCheck::Rank {
 public:
  Rank(RestoreCheck& check, int rank)
      : check_(check),
        files_(check.overlay_.files()),
        seams_(check.attempt_->seams(rank)),
        position_{.attempt = check.subject_.attempt, .rank = rank},
        recording_(check.recorder_ == nullptr ? nullptr : std::make_unique<Recording>(*check.recorder_, *this)),
        collectives_(recording_ ? recording_->transport : seams_.transport, check.memo_, position_, observer_),
        parts_{.files = recording_ ? recording_->files : *files_,
               .transport = recording_ ? recording_->transport : seams_.transport,
               .collectives = collectives_,
               .store = seams_.store,
               .compute = check.memo_,
               .clock = seams_.clock,
               .host = seams_.host,
               .observer = observer_,
               .position = position_},
        groups_(groups_of(check.subject_.job, check.subject_.layout, rank)),
        context_{.parts = parts_,
                 .job = check.subject_.job,
                 .world = groups_.world,
                 .identity = check.subject_.identity,
                 .attempt = check.subject_.attempt},
        state_(blank_view(check.subject_.model,
                          holdings_of(check.subject_.job, check.subject_.layout, check.subject_.model, rank))) {
    for (const StateGroup& group : state_) garbage_.push_back(garbage_of(group));
  }

  void main() {
    std::vector<std::string> addresses;
    for (int peer = 0; peer < check_.attempt_->world_size(); ++peer) {
      addresses.push_back(check_.attempt_->seams(peer).transport.address());
    }
    if (!seams_.transport.connect(addresses, sim::never)) return;
    while (seams_.host.wait(begin_event, sim::never)) {
      found_.reset();
      // A catalog in RocksDB stays open from the claim on, and this is another disk.
      const bool keeps_open = check_.subject_.job.checkpoint.catalog == CatalogKind::rocksdb;
      if (!protocol_ || keeps_open) protocol_ = check_.subject_.protocol();
      for (std::size_t group = 0; group < state_.size(); ++group) state_[group].value = garbage_[group];
      try {
        status_ = recover();
      } catch (const CheckFailure& failure) {
        status_ = Error{.code = Code::internal, .message = failure.what()};
        if (check_.own_failure_.empty() && is_of_the_harness(failure.what())) check_.own_failure_ = failure.what();
      }
      if (++check_.done_ == check_.ranks_.size()) check_.machine_.scheduler().stop();
    }
  }
  void begin() { seams_.host.notify(begin_event); }

  const Status& status() const { return status_; }
  const std::optional<CheckpointId>& found() const { return found_; }
  const StateView& state() const { return state_; }

 private:
  Status recover() {
    FD_TRY_VOID(protocol_->claim_attempt(context_));
    FD_TRY(const FindResult found, protocol_->find(context_));
    found_ = found.chosen;
    if (!found.chosen) return {};
    return protocol_->restore(context_, found, state_);
  }

  RestoreCheck& check_;
  // What stands between the rank and its seams if it is recorded.
  struct Recording {
    Recording(crash::Recorder& recorder, Rank& rank)
        : recorded(recorder, rank.position_, rank.seams_.host.node()),
          files(*rank.files_, recorded),
          transport(rank.seams_.transport, recorded) {}
    crash::RankRecorder recorded;
    crash::RecordingFileSystem files;
    crash::RecordingTransport transport;
  };

  std::unique_ptr<FileSystem> files_;
  sim::Seams seams_;
  Position position_;
  std::unique_ptr<Recording> recording_;
  SilentObserver observer_;
  TransportCollectives collectives_;
  Parts parts_;
  Groups groups_;
  CheckpointContext context_;
  std::unique_ptr<Protocol> protocol_;
  StateView state_;
  std::vector<Value> garbage_;  // by group: what a restore that leaves something out leaves there
  Status status_;
  std::optional<CheckpointId> found_;
};

RestoreCheck::RestoreCheck(const CheckSubject& subject, const OverlayOptions& options, crash::Recorder* recorder)
    : subject_(subject), recorder_(recorder), overlay_(options), machine_(fibers_), memo_(direct_, memo_table_) {
  if (subject.unread != nullptr && !subject.unread->empty()) guard_.emplace(*subject.unread);
}

RestoreCheck::~RestoreCheck() { machine_.kill_all(); }

void RestoreCheck::start() {
  machine_.reset({.schedule = {.seed = 0, .plain = true}, .costs = free_of_charge(), .disk = {}});
  ranks_.clear();
  sim::AttemptOptions options{.number = subject_.attempt, .node_of_rank = {}};
  for (int rank = 0; rank < subject_.layout.world_size(); ++rank) {
    options.node_of_rank.push_back(node_of(subject_.job, rank));
  }
  attempt_ = &machine_.start_attempt(options);
  for (int rank = 0; rank < attempt_->world_size(); ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank));
  for (int rank = 0; rank < attempt_->world_size(); ++rank) {
    attempt_->start(rank, [this, rank] { ranks_[static_cast<std::size_t>(rank)]->main(); });
  }
  running_ = true;
}

const CheckAnswer& RestoreCheck::check(DiskContent& content) {
  if (guard_) guard_->stand_before(content);
  overlay_.look_at(guard_ ? *guard_ : content);
  if (!running_) start();
  done_ = 0;
  for (const std::unique_ptr<Rank>& rank : ranks_) rank->begin();
  const sim::RunStop why = machine_.scheduler().run();
  if (!own_failure_.empty()) {
    running_ = false;
    throw CheckFailure(std::exchange(own_failure_, {}));
  }
  FD_CHECK(!guard_ || guard_->trespass().empty(),
           "{} was read, which the recovery before did not read: it could hold something else", guard_->trespass());
  ++checks_;
  answer_.restored = answer_.fresh = answer_.golden = false;
  answer_.found.reset();
  answer_.trouble.clear();
  if (why != sim::RunStop::stopped) {
    answer_.trouble = fmt::format("the ranks wait for each other: {}", machine_.scheduler().describe_waiting());
  } else {
    conclude();
  }
  if (!answer_.restored && !answer_.fresh) running_ = false;  // ranks may stand at different calls
  return answer_;
}

void RestoreCheck::conclude() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Status& status = ranks_[rank]->status();
    if (!status && answer_.trouble.empty()) {
      answer_.trouble = fmt::format("rank {}: {}", rank, describe(status.error()));
    }
  }
  answer_.found = ranks_.front()->found();
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    if (answer_.trouble.empty() && rank->found() != answer_.found) answer_.trouble = "the ranks found different ones";
  }
  if (!answer_.trouble.empty()) return;
  if (!answer_.found) {
    answer_.fresh = true;
    return;
  }
  answer_.restored = true;
  compare_with_golden(*answer_.found);
}

void RestoreCheck::compare_with_golden(const CheckpointId& id) {
  bool whole = last_whole_.size() == ranks_.size();
  std::vector<const Compared*>& now = last_whole_;
  now.resize(ranks_.size(), nullptr);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Compared& compared = compare_rank(rank, id.step);
    if (!compared.difference.empty() && answer_.trouble.empty()) answer_.trouble = compared.difference;
    if (now[rank] != &compared) whole = false;
    now[rank] = &compared;
  }
  if (!whole && answer_.trouble.empty()) {
    for (const std::string& tensor : subject_.golden.tensors) {
      const bool held =
          std::any_of(now.begin(), now.end(), [&](const Compared* c) { return c->tensors.contains(tensor); });
      if (!held) answer_.trouble = fmt::format("no rank restored {}", tensor);
    }
  }
  if (!answer_.trouble.empty()) last_whole_.clear();
  answer_.golden = answer_.trouble.empty();
}

const RestoreCheck::Compared& RestoreCheck::compare_rank(std::size_t rank, std::int64_t step) {
  const StateView& state = ranks_[rank]->state();
  const Digest digest = digest_of_state(state);
  for (const std::unique_ptr<Compared>& known : compared_) {
    if (known->state == digest && known->rank == rank && known->step == step) return *known;
  }
  compared_.push_back(std::make_unique<Compared>());
  Compared& compared = *compared_.back();
  compared.rank = rank;
  compared.step = step;
  compared.state = digest;
  const Golden& golden = subject_.golden;
  if (step < 1 || step > static_cast<std::int64_t>(golden.steps.size())) {
    compared.difference = fmt::format("rank {} restored step {}, which the job does not have", rank, step);
    return compared;
  }
  const GoldenStep& expected = golden.steps[static_cast<std::size_t>(step - 1)];
  for (const StateGroup& group : state) {
    for (const TensorSlot& tensor : group.tensors) {
      compared.tensors.insert(tensor.name);
      const auto at = std::lower_bound(golden.tensors.begin(), golden.tensors.end(), tensor.name);
      const bool known = at != golden.tensors.end() && *at == tensor.name;
      const Value bytes = group.value.slice(tensor.offset, tensor.count());
      if (known && expected.tensors[static_cast<std::size_t>(at - golden.tensors.begin())] == bytes.digest_recomputed())
        continue;
      if (compared.difference.empty()) {
        compared.difference = fmt::format("rank {} restored {} of step {} unlike the golden", rank, tensor.name, step);
      }
    }
  }
  return compared;
}

}  // namespace firedrill
