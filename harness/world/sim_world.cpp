#include "harness/world/sim_world.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "engine/os/channel.h"
#include "harness/world/sim_costs.h"
#include "harness/world/sim_ranks.h"

namespace firedrill {

void SimWorld::note_deaths(const std::function<bool(int rank)>& dies, const Position& killer) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankBox& box = *ranks_[rank];
    if (dies(static_cast<int>(rank)) && !box.died()) {
      box.dies_here(killer.rank == static_cast<int>(rank) ? &killer : nullptr);
    }
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
  resources_.machine.reset({.schedule = {.seed = subject.plan.seed},
                            .costs = costs_of(subject.plan.job.cluster),
                            .disk = {.dependent = "shards", .witness = "manifests", .unread = "tmp"}});
  if (options_.recorder != nullptr) {
    options_.recorder->number_by([&resources] { return resources.machine.disk().operations(); });
  }
  resources_.machine.disk().on_change = [this](const sim::DiskChange& change) { disk_changed(change); };
  for (const FaultSpec& fault : subject.plan.faults) fault_names_.push_back(recorder_.intern(describe(fault)));
}

const RunIdentity& SimWorld::identity_of(const AttemptOrder& order) {
  const Plan& plan = subject_.plan;
  if (!order.other_layout) return subject_.identity;
  if (subject_.identity_of_restarts != nullptr) return *subject_.identity_of_restarts;
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
  for (int rank = 0; rank < subject_.plan.layout_if(order.other_layout).world_size(); ++rank) {
    const int place = node_of(job, rank);
    options.node_of_rank.push_back(order.nodes.empty() ? place : order.nodes[static_cast<std::size_t>(place)]);
  }
  for (const int node : std::set<int>(options.node_of_rank.begin(), options.node_of_rank.end())) ++node_starts_[node];
  sim::Attempt& attempt = resources_.machine.start_attempt(options);
  ranks_.clear();
  exit_codes_.clear();
  liveness_ = subject_.liveness();
  watch_.emplace(
      attempt, job.cluster, *liveness_, recorder_,
      SimWatch::Ranks{.pulse_of = [this](int rank) { return ranks_[static_cast<std::size_t>(rank)]->pulse(); },
                      .before_kill = [this](int rank) { ranks_[static_cast<std::size_t>(rank)]->dies_here(nullptr); }});
  if (options_.recorder != nullptr) options_.recorder->attempt_started(order.attempt);
  attempt.takes_message_of = [this, number = order.attempt](int sent_in) {
    return ranks_.front()->rules().takes_message(number, sent_in);
  };
  for (int rank = 0; rank < attempt.world_size(); ++rank)
    ranks_.push_back(std::make_unique<RankBox>(*this, attempt, rank, order));
  attempt.on_rank_end = [this](int rank) { ranks_[static_cast<std::size_t>(rank)]->announce_end(); };
  attempt.on_message = nullptr;  // an attempt of an earlier world may have left its own
  if (options_.probes) {
    attempt.on_message = [this](int rank, int peer, int sent_in) {
      emit(recorder_, ranks_[static_cast<std::size_t>(rank)]->position(),
           {.kind = EventKind::message_taken, .a = peer, .b = sent_in});
    };
  }
  for (int rank = 0; rank < attempt.world_size(); ++rank)
    attempt.start(rank, [this, rank] { ranks_[static_cast<std::size_t>(rank)]->main(); });
  const Status ran = watch_->run();
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
      continue;
    }
    switch (box.end()) {
      case RankEnd::finished: ++result.finished; break;
      case RankEnd::left: ++result.left; break;
      case RankEnd::died:
        ++result.died;
        if (first_death.empty()) first_death = fmt::format("rank {} died", rank);
        break;
      default:
        ++result.failed;
        if (first_error.empty()) first_error = fmt::format("rank {}: {}", rank, box.words());
    }
  }
  if (!ran) {
    result.stuck = true;
    result.why = ran.error().message;
  } else {
    result.why = result.broken > 0 || first_death.empty() ? first_error : first_death;
    if (result.broken == 0 && !watch_->blame().empty()) result.why = watch_->blame();
  }
  if (result.why.empty()) result.why = result.left > 0 ? "all ranks left as agreed" : "the job finished";
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

}  // namespace firedrill
