#include "engine/train/recovery.h"

#include <fmt/format.h>

#include <exception>

#include "engine/train/replicas.h"
#include "engine/train/rerun.h"
#include "engine/train/trainer.h"

namespace firedrill {
namespace {

// What the code of a step throws (a library that dislikes its input, no memory) ends the rank with an error, like any
// other failure of it; checks of our own stay findings.
Result<StepReport> step_of(Trainer& trainer) {
  std::string thrown;
  try {
    return trainer.step();
  } catch (const CheckFailure&) {
    throw;
  } catch (const std::exception& exception) {
    thrown = exception.what();
  }
  return Error{.code = Code::invalid_input, .message = fmt::format("the step threw an exception: {}", thrown)};
}

// One rank's attempt, from the rendezvous on.
class Attempt {
 public:
  Attempt(const AttemptContext& context, const RankShape& shape, Parts& parts)
      : context_(context),
        shape_(shape),
        parts_(parts),
        groups_(shape.groups),
        holdings_(shape.holdings),
        checkpoints_{.parts = parts,
                     .job = context.job,
                     .world = groups_.world,
                     .identity = context.identity,
                     .attempt = context.attempt,
                     .floor = context.floor},
        rerun_(parts.compute, context.rules, parts.position, parts.observer),
        step_parts_{.files = parts.files,
                    .transport = parts.transport,
                    .collectives = parts.collectives,
                    .store = parts.store,
                    .compute = context.layout.rerun ? rerun_ : parts.compute,
                    .clock = parts.clock,
                    .host = parts.host,
                    .observer = parts.observer,
                    .position = parts.position} {}

  Result<RankResult> run();

 private:
  Status meet();
  Status visit_groups();
  Status ask_to_leave(std::int64_t step);
  Result<bool> leaves(std::int64_t step);
  Result<RankResult> end(RankResult result);
  Result<TrainingState> begin();
  Result<bool> step(Trainer& trainer, std::int64_t step);
  Status save(Trainer& trainer, std::int64_t step);
  Status dispatch(Trainer& trainer, std::int64_t step);
  Status join();
  Status judge(Status published, std::int64_t step);
  bool publishes_aside() const { return context_.job.checkpoint.mode == PublishMode::async; }
  AsyncPublisher& publisher() const { return context_.second->publisher; }
  bool save_due(std::int64_t step) const;
  Time deadline() const { return parts_.clock.now() + context_.job.cluster.deadline; }

  const AttemptContext& context_;
  const RankShape& shape_;
  Parts& parts_;
  const Groups& groups_;
  const Holdings& holdings_;
  CheckpointContext checkpoints_;
  RerunCompute rerun_;
  Parts step_parts_;  // with `rerun_` where the layout says so
  std::optional<ReplicaTable> own_replica_table_;
  std::optional<ReplicaCheck> replicas_;
  int failures_in_a_row_ = 0;
  bool asked_ = false;
  const std::string leave_key_ = fmt::format("attempt/{}/leave", context_.attempt);
};

Result<RankResult> Attempt::run() {
  emit(parts_.observer, parts_.position,
       {.kind = EventKind::rank_started, .name = parts_.observer.intern(to_string(context_.layout))});
  FD_TRY_VOID(meet());
  if (context_.job.steps == 0) {
    FD_TRY_VOID(visit_groups());
    return RankResult::finished;
  }
  FD_TRY(TrainingState state, begin());
  if (publishes_aside()) {
    FD_CHECK(context_.second, "an asynchronous publish needs a second task");
    publisher().open(checkpoints_, context_.second->parts, groups_.publish, context_.protocol);
  }
  if (context_.layout.replica_check > 0) {
    const ReplicaTable* known = context_.shape == nullptr ? nullptr : &context_.shape->replicas;
    if (known == nullptr) {
      known = &own_replica_table_.emplace(replica_table_of(context_.job, context_.layout, context_.model));
    }
    replicas_.emplace(context_.job, *known, groups_, context_.rules, parts_);
  }
  Trainer trainer(context_.job, context_.layout, context_.model, context_.sampler, context_.text, step_parts_,
                  std::move(state), context_.rules, context_.source, &shape_);
  for (std::int64_t step = trainer.state().counters.step + 1;
       context_.rules.input_left(holdings_, step, context_.job.steps); ++step) {
    parts_.position.step = step;
    if (publishes_aside() && publisher().done()) FD_TRY_VOID(join());
    FD_TRY_VOID(ask_to_leave(step));
    FD_TRY(const bool leaving, this->step(trainer, step));
    if (leaving) return end(RankResult::left);
  }
  return end(RankResult::finished);
}

Result<RankResult> Attempt::end(RankResult result) {
  if (publishes_aside()) FD_TRY_VOID(join());
  // Nobody leaves while a peer may still need an answer.
  FD_TRY_VOID(parts_.collectives.barrier(groups_.world, {.purpose = "end", .deadline = deadline()}));
  return result;
}

Status Attempt::ask_to_leave(std::int64_t step) {
  if (asked_ || !context_.stop_requested || !context_.stop_requested()) return {};
  asked_ = true;
  return parts_.store.set(leave_key_, std::to_string(step));
}

// Whether some rank has asked to leave before it began this step. Nobody can have asked for an older one: all would
// have left behind that.
Result<bool> Attempt::leaves(std::int64_t step) {
  const PhaseScope scope(parts_.position, Phase::exchange);
  FD_TRY(const std::string asked, parts_.store.get(leave_key_, deadline()));
  if (asked != std::to_string(step) || step == context_.job.steps) return false;
  emit(parts_.observer, parts_.position, {.kind = EventKind::preempt_agreed, .step = step, .a = step});
  return true;
}

// Nothing of a step is announced or saved unless the checks that the layout turns on have passed it. Says whether this
// was the last step before all ranks leave.
Result<bool> Attempt::step(Trainer& trainer, std::int64_t step) {
  const int every = context_.layout.replica_check;
  if (context_.layout.rerun) FD_TRY_VOID(verify_state(parts_.compute, context_.model, trainer.state()));
  if (asked_) trainer.will_leave();
  const Result<StepReport> report = step_of(trainer);
  if (!report) {
    // A peer that gave up says nothing of why; what ended the attempt is what the first rank says here.
    const PhaseScope scope(parts_.position, trainer.last_phase());
    emit(parts_.observer, parts_.position,
         {.kind = EventKind::note, .name = parts_.observer.intern(describe(report.error()))});
    const bool bad_rows = trainer.last_phase() == Phase::input && report.failed_with(Code::corrupted);
    if (bad_rows && context_.rules.skips_bad_rows()) return false;
    return report.error();
  }
  FD_TRY(const bool leaving, leaves(step));
  const bool saves = leaving || save_due(step);
  const bool before_saving = context_.rules.compares_replicas_before_saving();
  const bool compares = every > 0 && (step % every == 0 || saves);
  if (compares && (before_saving || !saves)) FD_TRY_VOID(replicas_->compare(trainer.view()));
  trainer.announce(*report);
  if (!saves) return leaving;
  FD_TRY_VOID(publishes_aside() ? dispatch(trainer, step) : save(trainer, step));
  if (compares && !before_saving) FD_TRY_VOID(replicas_->compare(trainer.view()));
  return leaving;
}

// Every rank leaves its address under its own key of this attempt, and waits for those of all others.
Status Attempt::meet() {
  const PhaseScope scope(parts_.position, Phase::rendezvous);
  const int number = context_.rendezvous > 0 ? context_.rendezvous : context_.attempt;
  const auto key = [number](int rank) { return fmt::format("attempt/{}/rank/{}", number, rank); };
  // Before its address: who has met rank 0 finds the key.
  if (parts_.position.rank == 0) FD_TRY_VOID(parts_.store.set(leave_key_, "0"));
  FD_TRY_VOID(parts_.store.set(key(parts_.position.rank), parts_.transport.address()));
  std::vector<std::string> addresses;
  for (int rank = 0; rank < context_.layout.world_size(); ++rank) {
    FD_TRY(std::string address, parts_.store.get(key(rank), deadline()));
    addresses.push_back(std::move(address));
  }
  FD_TRY_VOID(parts_.transport.connect(addresses, deadline()));
  return context_.protocol.claim_attempt(checkpoints_);
}

// A job of no steps tries what others use: every group of this rank.
Status Attempt::visit_groups() {
  for (const Group* group :
       {&groups_.world, &groups_.publish, &groups_.dp, &groups_.tp, &groups_.cp, &groups_.pp, &groups_.pp_backward,
        &groups_.model, &groups_.ep, &groups_.expert_cp, &groups_.expert_dp, &groups_.tied}) {
    if (group->size() == 0) continue;
    FD_TRY_VOID(parts_.collectives.barrier(*group, {.purpose = "visit", .deadline = deadline()}));
  }
  return {};
}

Result<TrainingState> Attempt::begin() {
  FD_TRY(const FindResult found, context_.protocol.find(checkpoints_));
  if (!found.chosen) {
    return initial_state(parts_.compute, context_.job, context_.model, context_.sampler.start(), holdings_,
                         shape_.moments.empty() ? initial_moments(context_.model, holdings_) : shape_.moments);
  }
  StateView view = shape_.view;
  FD_TRY_VOID(context_.protocol.restore(checkpoints_, found, view));
  return state_from(context_.job, context_.model, view, holdings_);
}

bool Attempt::save_due(std::int64_t step) const {
  const int every = context_.job.checkpoint.every;
  return step == context_.job.steps || (every > 0 && step % every == 0);
}

Status Attempt::save(Trainer& trainer, std::int64_t step) {
  const Result<Publication> published =
      context_.protocol.publish(checkpoints_, step, trainer.view(), digest_of_state(trainer.view()));
  return judge(published ? Status() : Status(published.error()), step);
}

Status Attempt::dispatch(Trainer& trainer, std::int64_t step) {
  FD_TRY_VOID(join());
  const Digest digest = digest_of_state(trainer.view());
  emit(parts_.observer, parts_.position, {.kind = EventKind::save_dispatched, .step = step, .digest = digest});
  return publisher().dispatch(step, trainer.view(), digest);
}

// Takes the outcome of the publish in flight, if there is one.
Status Attempt::join() {
  if (!publisher().in_flight()) return {};
  const std::int64_t step = publisher().step();
  return judge(publisher().join(), step);
}

Status Attempt::judge(Status published, std::int64_t step) {
  if (published) {
    failures_in_a_row_ = 0;
    return {};
  }
  const CheckpointSpec& spec = context_.job.checkpoint;
  ++failures_in_a_row_;
  const bool goes_on = spec.on_error == OnError::continue_training && failures_in_a_row_ <= spec.failures_max;
  // Alone no rank may go on.
  if (published.error().retryable && goes_on && step < context_.job.steps) return {};
  return published;
}

}  // namespace

Result<RankResult> run_rank(const AttemptContext& context, Parts& parts) {
  const int rank = parts.position.rank;
  if (context.shape != nullptr)
    return Attempt(context, context.shape->ranks[static_cast<std::size_t>(rank)], parts).run();
  const RankShape own = rank_shape_of(context.job, context.layout, context.model, rank);
  return Attempt(context, own, parts).run();
}

}  // namespace firedrill
