// The ranks of the sim world: what each task of a rank works with, decorators included, and the life of a rank from its
// main to its end. Parts of SimWorld; included by its source file only.
#pragma once

#include <fmt/format.h>

#include "engine/comm/accounting.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/digested_transport.h"
#include "engine/comm/guard.h"
#include "engine/os/channel.h"
#include "engine/sim/rank.h"
#include "engine/train/recovery.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_input.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"
#include "harness/world/pulsed.h"
#include "harness/world/sim_parts.h"
#include "harness/world/sim_recording.h"
#include "harness/world/sim_world.h"

namespace firedrill {

// Of which task of its rank a box is: the host as the task sees it, and the pulse that it moves.
struct TaskPlace {
  Host& host;
  Pulse& pulse;
  bool aside = false;
};

// What one task of a rank works with: its place in its work, and the seams with the decorators around them.
class SimWorld::TaskBox final : private Effects {
 public:
  // `recording`: of the rank; none: nothing is recorded.
  TaskBox(SimWorld& world, sim::Attempt& attempt, int rank, const AttemptOrder& order, FireCounts* shared,
          RankRecording* recording, const TaskPlace& task)
      : world_(world),
        attempt_(attempt),
        seams_(attempt.seams(rank)),
        position_{.attempt = order.attempt, .rank = rank, .step = 0, .phase = Phase::none},
        observer_(world.recorder_, seams_.host),
        recording_(recording == nullptr ? nullptr
                                        : std::make_unique<TaskRecording>(*recording, position_, seams_, observer_)),
        injector_(world.subject_.plan.faults, order.fired, position_, *this, shared, &task.pulse),
        files_(recording_ ? recording_->files() : seams_.files, injector_),
        recorded_(recording_ ? recording_->above(files_) : nullptr),
        pulsed_transport_(recording_ ? recording_->transport() : seams_.transport, task.pulse, world.backstop()),
        transport_(pulsed_transport_, injector_),
        digested_(transport_),
        layout_(world.subject_.plan.layout_if(order.other_layout)),
        pulsed_store_(seams_.store, task.pulse, world.backstop()),
        store_(pulsed_store_, injector_),
        memo_(world.direct_, world.resources_.memo, memo_caller(layout_, rank, task.aside)),
        costed_(world.options_.memo && !world.options_.digest_check ? static_cast<Compute&>(memo_) : world.kernels_,
                attempt, rank),
        compute_(costed_, injector_),
        text_(compute_, world.subject_.text, world.subject_.plan.job.model.sequence),
        input_(text_, injector_),
        account_(world.subject_.plan.accounting
                     ? std::make_unique<Account>(seams_.clock, position_, observer_, task.aside)
                     : nullptr),
        accounted_transport_(
            account_ ? std::make_unique<AccountingTransport>(messages(), *account_, &attempt.rank(rank).transport())
                     : nullptr),
        noted_(accounted_transport_ ? static_cast<Transport&>(*accounted_transport_) : messages()),
        plain_collectives_(noted_, compute_, position_, observer_),
        guard_(make_guard(layout_.guard)),
        collectives_(guard_ ? static_cast<Collectives&>(*guard_) : plain_collectives_, injector_),
        accounted_collectives_(account_ ? std::make_unique<AccountingCollectives>(collectives_, *account_) : nullptr),
        parts_{
            .files = recorded_ ? *recorded_ : files_,
            .transport = messages(),
            .collectives = accounted_collectives_ ? static_cast<Collectives&>(*accounted_collectives_) : collectives_,
            .store = store_,
            .compute = compute_,
            .clock = seams_.clock,
            .host = task.host,
            .observer = recording_ ? recording_->observer() : observer_,
            .position = position_} {
    if (world.options_.census == nullptr) return;
    census_.emplace(*world.options_.census, order.attempt, rank);
    injector_.count_in(*census_);
  }

  Parts& parts() { return parts_; }
  Input& input() { return input_; }
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
    world_.note_deaths([this](int rank) { return rank == position_.rank; }, position_);
    attempt_.kill_rank(position_.rank);
  }
  sim::SimRank& own_rank() { return attempt_.rank(position_.rank); }
  void hang_rank() override {
    own_rank().freeze();
    (void)own_rank().refusal();  // comes back when it has been killed
  }
  void stall_task() override { own_rank().hold(); }
  void preempt_rank() override {
    own_rank().request_stop();
    world_.watch_->preempted(position_.rank);
  }
  void exit_rank(int code) override {
    world_.exit_codes_[position_.rank] = code;
    kill_rank();
  }
  void kill_node(bool lose_unsynced_data, bool lose_unsynced_names) override {
    const int node = seams_.host.node();
    world_.note_deaths([this, node](int rank) { return attempt_.seams(rank).host.node() == node; }, position_);
    attempt_.kill_node(node);
    world_.node_lost(node, lose_unsynced_data, lose_unsynced_names, position_);
  }
  Transport& messages() { return layout_.guard == Guard::check ? static_cast<Transport&>(digested_) : transport_; }
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
    return firedrill::others_in(group, world_.subject_.plan.job, layout_, position_.rank);
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
  std::optional<TaskCensus> census_;     // none: nobody counts
  Injector injector_;
  FaultyFileSystem files_;
  std::unique_ptr<FileSystem> recorded_;  // the calls that faults made fail
  PulsedTransport pulsed_transport_;
  FaultyTransport transport_;
  DigestedTransport digested_;
  const Layout& layout_;
  PulsedStore pulsed_store_;
  FaultyStore store_;
  sim::MemoCompute memo_;  // the world's, as seen by this task
  sim::CostedCompute costed_;
  FaultyCompute compute_;
  CorpusInput text_;
  FaultyInput input_;
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
               RankRecording* recording, const TaskPlace& place)
      : task(world, attempt, rank, order, &shared, recording, place), publisher(world.subject_.publisher()) {}

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
        pause_(order.pause),
        bare_host_(recording_ ? recording_->host() : attempt.seams(rank).host),
        main_host_(bare_host_, pulse_),
        task_(world, attempt, rank, order, &fired_, recording_.get(), {.host = main_host_, .pulse = pulse_.main}),
        protocol_(world.subject_.protocol()),
        rules_(world.subject_.rules()),
        context_{.job = world.subject_.plan.job,
                 .layout = world.subject_.plan.layout_if(order.other_layout),
                 .model = world.subject_.model,
                 .sampler = world.subject_.sampler,
                 .text = world.subject_.text,
                 .identity = world.identity_of(order),
                 .protocol = *protocol_,
                 .attempt = order.attempt,
                 .floor = order.floor,
                 .stop_requested = [&attempt, rank] { return attempt.rank(rank).stop_requested(); },
                 .rendezvous = world.liveness_->rendezvous_number(order.attempt,
                                                                  world.node_starts_[attempt.seams(rank).host.node()]),
                 .rules = *rules_,
                 .source = {.input = &task_.input(), .digests = world.subject_.digests},
                 .shape = order.other_layout ? world.subject_.shape_of_restarts : world.subject_.shape} {
    if (context_.job.checkpoint.mode != PublishMode::async) return;
    aside_ = std::make_unique<PublisherBox>(world, attempt, rank, order, fired_, recording_.get(),
                                            TaskPlace{.host = bare_host_, .pulse = pulse_.aside, .aside = true});
    context_.second.emplace(SecondTask{.publisher = *aside_->publisher, .parts = aside_->task.parts()});
  }

  void main() {
    try {
      if (pause_ > Duration{0}) status_ = task_.parts().clock.sleep_until(world_.resources_.machine.now() + pause_);
      if (status_) {
        Result<RankResult> result = run_rank(context_, task_.parts());
        left_ = result && *result == RankResult::left;
        if (!result) status_ = std::move(result).error();
      }
    } catch (const CheckFailure& failure) {
      status_ = Error{.code = Code::internal, .message = failure.what()};
    }
    task_.finish(status_.ok());
    if (aside_) aside_->task.finish(status_.ok());
  }

  // Once the rank has ended, by whatever way.
  void announce_end() {
    // A rank that dies or gives up leaves its phases while its calls unwind.
    const Position position = died_at_ ? *died_at_ : status_ ? task_.position() : last_seen();
    Event event{.kind = EventKind::rank_ended,
                .phase = position.phase,
                .rank = static_cast<std::int16_t>(position.rank),
                .attempt = position.attempt,
                .step = position.step};
    event.a = static_cast<std::int64_t>(end());
    if (exit_code()) {
      event.name = world_.recorder_.intern(words());
      event.detail = world_.recorder_.intern(to_string(Code::dead));
    } else if (died()) {
      event.name = world_.recorder_.intern(world_.watch_->why_killed(position.rank));
    } else if (!status_) {
      event.name = world_.recorder_.intern(describe(status_.error()));
      event.detail = world_.recorder_.intern(to_string(status_.error().code));
    }
    world_.recorder_.event(event);
    if (end() != RankEnd::finished && end() != RankEnd::left) world_.watch_->ended_badly();
  }

  RankEnd end() const {
    if (const auto code = exit_code()) {
      return world_.liveness_->completed(false, *code) ? RankEnd::finished : RankEnd::failed;
    }
    if (died()) return RankEnd::died;
    if (!status_) return status_.failed_with(Code::internal) ? RankEnd::check_failed : RankEnd::failed;
    return left_ ? RankEnd::left : RankEnd::finished;
  }
  // Of an end with an error.
  std::string words() const {
    const auto code = exit_code();
    return code ? fmt::format("it ended with exit code {} before its work was done", *code) : describe(status_.error());
  }
  PulseReading pulse() const { return pulse_.read(); }

  // Of the task that runs now.
  const Position& position() const {
    if (!aside_) return task_.position();
    const bool aside = attempt_.machine().scheduler().current().name == AsyncPublisher::task_name;
    return aside ? aside_->task.position() : task_.position();
  }
  const Status& status() const { return status_; }
  const TrainingRules& rules() const { return *rules_; }
  // `by`: where its own call is that kills it; nullptr: another's does.
  void dies_here(const Position* by) { died_at_ = by != nullptr ? *by : last_seen(); }
  std::optional<int> exit_code() const {
    const auto found = world_.exit_codes_.find(task_.position().rank);
    return found == world_.exit_codes_.end() ? std::nullopt : std::optional(found->second);
  }
  bool died() const { return attempt_.end_of(task_.position().rank) == sim::RankEnd::died; }

 private:
  // Where it made its last call.
  Position last_seen() const {
    Position position = task_.position();
    const PulseReading last = pulse();
    position.step = last.step;
    position.phase = last.phase;
    return position;
  }

  SimWorld& world_;
  sim::Attempt& attempt_;
  FireCounts fired_;
  std::unique_ptr<RankRecording> recording_;
  Duration pause_;  // before anything else
  RankPulse pulse_;
  Host& bare_host_;
  PulsedHost main_host_;
  TaskBox task_;
  std::unique_ptr<PublisherBox> aside_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<TrainingRules> rules_;
  AttemptContext context_;
  Status status_;
  bool left_ = false;
  std::optional<Position> died_at_;
};

}  // namespace firedrill
