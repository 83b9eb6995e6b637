#include "harness/world/sim_world.h"

#include <fmt/format.h>

#include <utility>

#include "engine/comm/accounting.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/guard.h"
#include "engine/train/recovery.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"
#include "faults/node_loss.h"
#include "harness/world/sim_costs.h"
#include "harness/world/sim_parts.h"
#include "harness/world/sim_recording.h"

namespace firedrill {
// What one task of a rank works with: its place in its work, and the seams with the decorators around them.
class SimWorld::TaskBox final : private Effects {
 public:
  // `recording`: of the rank; none: nothing is recorded. `aside`: the second task.
  TaskBox(SimWorld& world, sim::Attempt& attempt, int rank, const AttemptOrder& order, FireCounts* shared,
          RankRecording* recording, bool aside)
      : world_(world),
        attempt_(attempt),
        seams_(attempt.seams(rank)),
        position_{.attempt = order.attempt, .rank = rank, .step = 0, .phase = Phase::none},
        observer_(world.recorder_, seams_.host),
        recording_(recording == nullptr ? nullptr
                                        : std::make_unique<TaskRecording>(*recording, position_, seams_, observer_)),
        injector_(world.subject_.plan.faults, order.fired, position_, *this, shared),
        files_(recording_ ? recording_->files() : seams_.files, injector_),
        recorded_(recording_ ? recording_->above(files_) : nullptr),
        transport_(recording_ ? recording_->transport() : seams_.transport, injector_),
        store_(seams_.store, injector_),
        costed_(world.kernels_, attempt, rank),
        compute_(costed_, injector_),
        account_(world.subject_.plan.accounting ? std::make_unique<Account>(seams_.clock, position_, observer_, aside)
                                                : nullptr),
        accounted_transport_(account_ ? std::make_unique<AccountingTransport>(transport_, *account_) : nullptr),
        noted_(accounted_transport_ ? static_cast<Transport&>(*accounted_transport_) : transport_),
        plain_collectives_(noted_, compute_, position_, observer_),
        guard_(make_guard(world.subject_.plan.layout_of(order.attempt).guard)),
        collectives_(guard_ ? static_cast<Collectives&>(*guard_) : plain_collectives_, injector_),
        accounted_collectives_(account_ ? std::make_unique<AccountingCollectives>(collectives_, *account_) : nullptr),
        parts_{
            .files = recorded_ ? *recorded_ : files_,
            .transport = transport_,
            .collectives = accounted_collectives_ ? static_cast<Collectives&>(*accounted_collectives_) : collectives_,
            .store = store_,
            .compute = compute_,
            .clock = seams_.clock,
            .host = recording != nullptr ? recording->host() : seams_.host,
            .observer = recording_ ? recording_->observer() : observer_,
            .position = position_} {}

  Parts& parts() { return parts_; }
  const Position& position() const { return position_; }
  // Its work is over: what the account and the guard have to say of that.
  void finish(bool well) {
    if (account_) account_->close();
    if (guard_) guard_->finish(well);
  }

 private:
  std::unique_ptr<GuardedCollectives> make_guard(Guard mode) {
    if (mode == Guard::off) return nullptr;
    return std::make_unique<GuardedCollectives>(
        plain_collectives_, mode,
        GuardedCollectives::Parties{.position = position_, .observer = observer_, .waits = noted_});
  }
  Status journal(const Firing& firing) override {
    emit(world_.recorder_, position_,
         {.kind = EventKind::fault_fired,
          .a = firing.fault,
          .b = operation_number(firing.call),
          .name = world_.fault_names_[static_cast<std::size_t>(firing.fault)],
          .detail = world_.recorder_.intern(words_of(firing.call))});
    return {};
  }
  bool rank_dead() const override { return seams_.host.dead(); }
  void kill_rank() override {
    world_.note_deaths([this](int rank) { return rank == position_.rank; });
    attempt_.kill_rank(position_.rank);
  }
  void kill_node(bool lose_unsynced_data, bool lose_unsynced_names) override {
    const int node = seams_.host.node();
    world_.note_deaths([this, node](int rank) { return attempt_.seams(rank).host.node() == node; });
    attempt_.kill_node(node);
    world_.node_lost(node, lose_unsynced_data, lose_unsynced_names, position_);
  }
  sim::Disk& disk() { return world_.resources_.machine.disk(); }
  FileSystem& storage() override {
    if (!storage_) {
      storage_ = disk().files({.node = seams_.host.node(), .rank = position_.rank, .attempt = position_.attempt});
    }
    return *storage_;
  }
  Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes) override {
    return disk().overwrite(path, offset, bytes);
  }
  void forget_unsynced(FileOp sync, std::string_view path) override {
    disk().forget_unsynced(sync, path, seams_.host.node());
  }
  void skew_clock(Duration by) override { world_.resources_.machine.skew_clock(seams_.host.node(), by); }
  std::vector<int> others_in(std::string_view group) override {
    const Plan& plan = world_.subject_.plan;
    return firedrill::others_in(group, plan.job, plan.layout_of(position_.attempt), position_.rank);
  }
  std::vector<int> node_ranks() override {
    return ranks_of_node(world_.subject_.plan.job, position_.rank, attempt_.world_size());
  }
  void trouble_link(int from, int to, const LinkTrouble& trouble) override {
    attempt_.disturb_link(from, to,
                          {.cut = trouble.cut,
                           .slower = trouble.slower,
                           .lose_every = trouble.lose_every,
                           .again = trouble.again,
                           .until = trouble.lasts > Duration{0} ? now() + trouble.lasts : sim::never});
  }
  void send_late(int peer, Tag tag, const Value& value) override {
    world_.resources_.machine.send_late(position_.rank, peer, position_.attempt, tag, value);
  }
  Time now() override { return seams_.clock.now(); }
  Status sleep_until(Time time) override { return seams_.clock.sleep_until(time); }

  SimWorld& world_;
  sim::Attempt& attempt_;
  sim::Seams seams_;
  Position position_;
  LivingObserver observer_;
  std::unique_ptr<TaskRecording> recording_;
  std::unique_ptr<FileSystem> storage_;  // below all gates and decorators, where a fault asked for it
  Injector injector_;
  FaultyFileSystem files_;
  std::unique_ptr<FileSystem> recorded_;  // the calls that faults made fail
  FaultyTransport transport_;
  FaultyStore store_;
  sim::CostedCompute costed_;
  FaultyCompute compute_;
  std::unique_ptr<Account> account_;  // none: nobody asked; so with what belongs to it
  std::unique_ptr<AccountingTransport> accounted_transport_;
  NotedTransport noted_;
  TransportCollectives plain_collectives_;
  std::unique_ptr<GuardedCollectives> guard_;  // with layout.guard off: none
  FaultyCollectives collectives_;
  std::unique_ptr<AccountingCollectives> accounted_collectives_;
  Parts parts_;
};

// The second task of a rank, where the job has one.
struct SimWorld::PublisherBox {
  PublisherBox(SimWorld& world, sim::Attempt& attempt, int rank, const AttemptOrder& order, FireCounts& shared,
               RankRecording* recording)
      : task(world, attempt, rank, order, &shared, recording, true), publisher(world.subject_.publisher()) {}

  TaskBox task;
  std::unique_ptr<AsyncPublisher> publisher;
};

// Everything of one rank in one attempt.
class SimWorld::RankBox final {
 public:
  RankBox(SimWorld& world, sim::Attempt& attempt, int rank, const AttemptOrder& order)
      : world_(world),
        attempt_(attempt),
        fired_(world.subject_.plan.faults.size(), order.fired),
        recording_(world.options_.recorder == nullptr
                       ? nullptr
                       : std::make_unique<RankRecording>(*world.options_.recorder, attempt.seams(rank),
                                                         Position{.attempt = order.attempt, .rank = rank},
                                                         world.resources_.machine.scheduler())),
        task_(world, attempt, rank, order, &fired_, recording_.get(), false),
        protocol_(world.subject_.protocol()),
        rules_(world.subject_.rules()),
        context_{.job = world.subject_.plan.job,
                 .layout = world.subject_.plan.layout_of(order.attempt),
                 .model = world.subject_.model,
                 .sampler = world.subject_.sampler,
                 .text = world.subject_.text,
                 .identity = world.identity_of(order.attempt),
                 .protocol = *protocol_,
                 .attempt = order.attempt,
                 .floor = order.floor,
                 .rules = *rules_} {
    if (context_.job.checkpoint.mode != PublishMode::async) return;
    aside_ = std::make_unique<PublisherBox>(world, attempt, rank, order, fired_, recording_.get());
    context_.second.emplace(SecondTask{.publisher = *aside_->publisher, .parts = aside_->task.parts()});
  }

  void main() {
    try {
      status_ = run_rank(context_, task_.parts());
    } catch (const CheckFailure& failure) {
      status_ = Error{.code = Code::internal, .message = failure.what()};
    }
    task_.finish(status_.ok());
    if (aside_) aside_->task.finish(status_.ok());
  }

  // Once the rank has ended, by whatever way.
  void announce_end() {
    // A rank that dies leaves its phases while its calls unwind.
    const Position position = died_at_.value_or(task_.position());
    Event event{.kind = EventKind::rank_ended,
                .phase = position.phase,
                .rank = static_cast<std::int16_t>(position.rank),
                .attempt = position.attempt,
                .step = position.step};
    if (died()) {
      event.a = 2;
    } else if (!status_) {
      event.a = status_.failed_with(Code::internal) ? 3 : 1;
      event.name = world_.recorder_.intern(describe(status_.error()));
      event.detail = world_.recorder_.intern(to_string(status_.error().code));
    }
    world_.recorder_.event(event);
  }

  // Of the task that runs now.
  const Position& position() const {
    if (!aside_) return task_.position();
    const bool aside = attempt_.machine().scheduler().current().name == AsyncPublisher::task_name;
    return aside ? aside_->task.position() : task_.position();
  }
  const Status& status() const { return status_; }
  const TrainingRules& rules() const { return *rules_; }
  void dies_here() { died_at_ = task_.position(); }
  bool died() const { return attempt_.end_of(task_.position().rank) == sim::RankEnd::died; }

 private:
  SimWorld& world_;
  sim::Attempt& attempt_;
  FireCounts fired_;
  std::unique_ptr<RankRecording> recording_;
  TaskBox task_;
  std::unique_ptr<PublisherBox> aside_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<TrainingRules> rules_;
  AttemptContext context_;
  Status status_;
  std::optional<Position> died_at_;
};

void SimWorld::note_deaths(const std::function<bool(int rank)>& dies) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankBox& box = *ranks_[rank];
    if (dies(static_cast<int>(rank)) && !box.died()) box.dies_here();
  }
}

SimWorld::SimWorld(SimResources& resources, const Subject& subject, Prober& prober, History& history,
                   const SimOptions& options)
    : resources_(resources),
      subject_(subject),
      prober_(prober),
      history_(history),
      options_(options),
      recorder_(history, [&resources] { return resources.machine.now(); }),
      direct_(subject.plan.job),
      memo_(direct_, resources.memo),
      checked_(options.memo ? static_cast<Compute&>(memo_) : direct_),
      kernels_(options.digest_check ? static_cast<Compute&>(checked_)
                                    : (options.memo ? static_cast<Compute&>(memo_) : direct_)) {
  resources_.machine.reset(
      {.schedule = {.seed = subject.plan.seed}, .costs = costs_of(subject.plan.job.cluster), .disk = {}});
  if (options_.recorder != nullptr) {
    options_.recorder->number_by([&resources] { return resources.machine.disk().operations(); });
  }
  resources_.machine.disk().on_change = [this](const sim::DiskChange& change) { disk_changed(change); };
  for (const FaultSpec& fault : subject.plan.faults) fault_names_.push_back(recorder_.intern(describe(fault)));
}

const RunIdentity& SimWorld::identity_of(int attempt) {
  const Plan& plan = subject_.plan;
  if (attempt == 1 || !plan.recovery.layout) return subject_.identity;
  if (!identity_of_restarts_) {
    identity_of_restarts_ = make_run_identity(plan.job, *plan.recovery.layout, plan.run_id,
                                              subject_.identity.corpus_digest, subject_.identity.numerics_key);
  }
  return *identity_of_restarts_;
}

SimWorld::~SimWorld() {
  resources_.machine.kill_all();
  resources_.machine.disk().on_change = nullptr;
}

Result<AttemptResult> SimWorld::run_attempt(const AttemptOrder& order) {
  const Job& job = subject_.plan.job;
  sim::AttemptOptions options{.number = order.attempt, .node_of_rank = {}};
  for (int rank = 0; rank < subject_.plan.layout_of(order.attempt).world_size(); ++rank)
    options.node_of_rank.push_back(node_of(job, rank));
  sim::Attempt& attempt = resources_.machine.start_attempt(options);
  ranks_.clear();
  if (options_.recorder != nullptr) options_.recorder->attempt_started(order.attempt);
  attempt.takes_message_of = [this, number = order.attempt](int sent_in) {
    return ranks_.front()->rules().takes_message(number, sent_in);
  };
  for (int rank = 0; rank < attempt.world_size(); ++rank)
    ranks_.push_back(std::make_unique<RankBox>(*this, attempt, rank, order));
  attempt.on_rank_end = [this](int rank) { ranks_[static_cast<std::size_t>(rank)]->announce_end(); };
  if (options_.probes) {
    attempt.on_message = [this](int rank, int peer, int sent_in) {
      emit(recorder_, ranks_[static_cast<std::size_t>(rank)]->position(),
           {.kind = EventKind::message_taken, .a = peer, .b = sent_in});
    };
  }
  for (int rank = 0; rank < attempt.world_size(); ++rank)
    attempt.start(rank, [this, rank] { ranks_[static_cast<std::size_t>(rank)]->main(); });
  const Status ran = attempt.run();
  if (trouble_) std::rethrow_exception(std::exchange(trouble_, nullptr));
  return conclude(attempt, ran);
}

AttemptResult SimWorld::conclude(sim::Attempt& attempt, const Status& ran) {
  AttemptResult result;
  std::string first_error;
  std::string first_death;
  for (int rank = 0; rank < attempt.world_size(); ++rank) {
    const RankBox& box = *ranks_[static_cast<std::size_t>(rank)];
    if (attempt.end_of(rank) == sim::RankEnd::threw || (!box.died() && box.status().failed_with(Code::internal))) {
      ++result.broken;
      first_error =
          fmt::format("rank {}: {}", rank, box.status() ? attempt.thrown_by(rank) : describe(box.status().error()));
    } else if (box.died()) {
      ++result.died;
      if (first_death.empty()) first_death = fmt::format("rank {} died", rank);
    } else if (!box.status()) {
      ++result.failed;
      if (first_error.empty()) first_error = fmt::format("rank {}: {}", rank, describe(box.status().error()));
    } else {
      ++result.finished;
    }
  }
  if (!ran) {
    result.stuck = true;
    result.why = ran.error().message;
  } else {
    result.why = result.broken > 0 || first_death.empty() ? first_error : first_death;
  }
  if (result.why.empty()) result.why = "the job finished";
  return result;
}

void SimWorld::disk_changed(const sim::DiskChange& change) {
  if (!options_.probes) return;
  const RankBox& box = *ranks_[static_cast<std::size_t>(change.issuer.rank)];
  const Position& position = box.position();
  const Event place{.kind = EventKind::probe,
                    .phase = position.phase,
                    .rank = static_cast<std::int16_t>(change.issuer.rank),
                    .attempt = change.issuer.attempt,
                    .step = position.step};
  Event event = place;
  event.kind = EventKind::disk_changed;
  event.a = static_cast<std::int64_t>(change.op);
  event.b = change.bytes;
  event.name = recorder_.intern(change.path);
  event.detail = change.second.empty() ? 0 : recorder_.intern(change.second);
  recorder_.event(event);
  probe_view(ProbeView::processes_die, place);
  probe_view(ProbeView::power_fails, place);
}

void SimWorld::node_lost(int node, bool data, bool names, const Position& position) {
  const UnsyncedChooser chooser = lose_unsynced({.data = data, .names = names});
  std::vector<UnsyncedItem> lost;
  resources_.machine.disk().lose_unsynced(node, [&](const UnsyncedItem& item) {
    const bool chosen = chooser(item);
    if (chosen) lost.push_back(item);
    return chosen;
  });
  if (options_.recorder != nullptr) options_.recorder->node_died(node, lost);
  Event event{.kind = EventKind::node_lost,
              .phase = position.phase,
              .attempt = position.attempt,
              .step = position.step,
              .a = node,
              .b = data ? 1 : 0,
              .c = names ? 1 : 0};
  recorder_.event(event);
  event = {.kind = EventKind::probe, .phase = position.phase, .attempt = position.attempt, .step = position.step};
  probe_view(ProbeView::processes_die, event);
  probe_view(ProbeView::power_fails, event);
}

}  // namespace firedrill
