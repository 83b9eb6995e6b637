// errors_reach_the_job: no error of the storage is swallowed.
//
// Verified: after each injected I/O error or "no space", the attempt that met it reports: a save fails or is tried
// anew, damage is recorded, or a rank ends with an error (or is dead, and then its end is reported); and no try whose
// shards, manifest or mark met an error is committed (or, behind its commit, acknowledged). A planned death explains
// the ends behind it: they report no error that its rank had passed over before. Damage that nobody was told of is
// noticed and reported too, before the try is validated: what a write did not store, and what went bad before it was
// read back.
// A publish that was dispatched to a second task has an outcome (acknowledged, or failed as a whole) before its rank
// dispatches the next one, so at most one is in flight; a rank that finished has seen them all, and the last one
// acknowledged.
// Not verified: errors of drop_cache, which promises nothing. In the process world ranks report over channels of their
// own, so there the order of a report and its fault is not judged, and any end of the attempt reports.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "faults/spec.h"
#include "harness/check/all.h"

namespace firedrill {
namespace {

// What the fault did must be noticed. Damage at rest only where the reading is still to come.
bool must_be_noticed(const FaultSpec& spec, const Event& fired) {
  const Harm harm = info_of(spec.kind).harm;
  if (harm == Harm::rest_damaged) return fired.phase == Phase::validate && spec.at.when == When::before;
  return harm == Harm::error || harm == Harm::write_damaged;
}

// The operation that the fault hit, as journaled, or as planned where an older history does not say.
std::optional<FileOp> operation_of(const FaultSpec& spec, const Event& fired) {
  if (fired.b > 0 && fired.b <= file_op_count) return static_cast<FileOp>(fired.b - 1);
  return spec.at.file_op;
}

// The error may rightly end where it happened.
bool may_stay_local(const FaultSpec& spec, const Event& fired) {
  const std::optional<FileOp> op = operation_of(spec, fired);
  if (op == FileOp::drop_cache) return true;
  return fired.phase == Phase::find && !(op && changes_disk(*op));
}

class Reports {
 public:
  explicit Reports(const Case& run) : run_(run), ordered_(run.plan().world == WorldKind::sim) {}

  bool any(std::size_t fired) const {
    const Event& fault = run_.event(fired);
    const auto of_attempt = [&](std::size_t at) { return run_.event(at).attempt == fault.attempt; };
    const auto new_try = [&](std::size_t at) {
      return of_attempt(at) && run_.event(at).step == fault.step && run_.event(at).a > 1;
    };
    const std::size_t unexplained = last_report(fired);
    const auto bad_end = [&](std::size_t at) { return of_attempt(at) && at < unexplained && run_.event(at).a != 0; };
    const auto bad_attempt = [&](std::size_t at) {
      return of_attempt(at) && at < unexplained && (run_.event(at).a > 0 || run_.event(at).b > 0);
    };
    return exists(EventKind::save_failed, fired, of_attempt) || exists(EventKind::damage, fired, of_attempt) ||
           exists(EventKind::save_started, fired, new_try) || exists(EventKind::rank_ended, fired, bad_end) ||
           exists(EventKind::attempt_ended, fired, bad_attempt);
  }

 private:
  template <class Fits>
  bool exists(EventKind kind, std::size_t after, Fits fits) const {
    const auto all = run_.history().of(kind);
    const auto begin = ordered_ ? std::upper_bound(all.begin(), all.end(), after) : all.begin();
    return std::any_of(begin, all.end(), fits);
  }

  // Ends from this position on say nothing of the fault: a planned death explains them, before which the rank had gone
  // on as if there had been no error.
  std::size_t last_report(std::size_t fired) const {
    const Event& fault = run_.event(fired);
    const std::size_t never = run_.history().size();
    if (!ordered_) return never;
    for (const std::uint32_t other : run_.history().of(EventKind::fault_fired)) {
      const FaultSpec* spec = run_.fault(run_.event(other));
      if (run_.event(other).attempt != fault.attempt || !spec || !takes_ranks(spec->kind)) continue;
      return other > fired && went_on(fired, other) ? other : never;
    }
    return never;
  }

  bool went_on(std::size_t fired, std::size_t until) const {
    const Event& fault = run_.event(fired);
    const bool aside = fault.phase == Phase::save || fault.phase == Phase::commit || fault.phase == Phase::validate ||
                       fault.phase == Phase::retire;
    for (std::size_t at = fired + 1; at < until; ++at) {
      const Event& event = run_.event(at);
      if (event.attempt != fault.attempt || event.rank != fault.rank) continue;
      switch (event.kind) {
        case EventKind::found:
        case EventKind::restored:
        case EventKind::started_fresh:
        case EventKind::save_dispatched:
        case EventKind::acknowledged: return true;
        case EventKind::sample:
        case EventKind::step_done:
          // A publish aside is no matter of these, and its error is due later.
          if (!aside || run_.plan().job.checkpoint.mode != PublishMode::async) return true;
          break;
        default: break;
      }
    }
    return false;
  }

  const Case& run_;
  bool ordered_;
};

// A try that met an error, and what must not follow.
struct SpoiledTry {
  std::int32_t attempt = 0;
  std::int64_t step = 0;
  std::int64_t trial = 0;
  bool committed_too = false;  // its commit must not follow either; else only its acknowledgement
  bool validated_too = false;  // nor its mark
};

// Success is out of the question for a try that met an error before its commit; one that met an error in its
// validation is committed already, but must not be acknowledged. Errors behind that (retention) spoil nothing.
std::optional<SpoiledTry> spoiled(const Event& event, std::int64_t trial) {
  const bool before_commit = event.phase == Phase::save || event.phase == Phase::commit;
  if (!before_commit && event.phase != Phase::validate) return std::nullopt;
  return SpoiledTry{.attempt = event.attempt, .step = event.step, .trial = trial, .committed_too = before_commit};
}

// The try that `rank` was in at a position.
std::optional<std::int64_t> try_at(const Case& run, std::size_t position) {
  const Event& fault = run.event(position);
  const auto starts = run.history().of(EventKind::save_started);
  for (auto at = std::lower_bound(starts.begin(), starts.end(), position); at != starts.begin();) {
    const Event& start = run.event(*--at);
    if (start.attempt != fault.attempt) return std::nullopt;
    if (start.rank == fault.rank && start.step == fault.step) return start.a;
  }
  return std::nullopt;
}

std::string success_of(const Case& run, const SpoiledTry& spoiled) {
  for (const EventKind kind : {EventKind::committed, EventKind::validated, EventKind::acknowledged}) {
    if (kind == EventKind::committed && !spoiled.committed_too) continue;
    if (kind == EventKind::validated && !spoiled.validated_too) continue;
    for (const std::uint32_t position : run.history().of(kind)) {
      const Event& event = run.event(position);
      if (event.attempt == spoiled.attempt && event.step == spoiled.step && event.a == spoiled.trial) {
        return fmt::format("{} is {} all the same", run.history().text(event.name), to_string(kind));
      }
    }
  }
  return {};
}

std::string check_faults(const Case& run, std::int64_t& checked) {
  const Reports reports(run);
  for (const std::uint32_t position : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(position);
    const FaultSpec* spec = run.fault(event);
    if (!spec || !must_be_noticed(*spec, event) || may_stay_local(*spec, event)) continue;
    ++checked;
    const std::string fault = fmt::format("{}: fault \"{}\"", place_of(event), run.history().text(event.name));
    if (!reports.any(position)) return fault + " was reported by nobody";
    const auto trial = try_at(run, position);
    auto bad = trial ? spoiled(event, *trial) : std::nullopt;
    // Nobody could know of silent damage before the commit, and the trial restore must see it.
    if (bad && info_of(spec->kind).harm != Harm::error) {
      bad->committed_too = false;
      bad->validated_too = true;
    }
    const std::string success = bad ? success_of(run, *bad) : std::string();
    if (!success.empty()) return fault + " hit its try, and " + success;
  }
  return {};
}

std::string check_failed_saves(const Case& run, std::int64_t& checked) {
  for (const std::uint32_t position : run.history().of(EventKind::save_failed)) {
    const Event& event = run.event(position);
    const auto bad = spoiled(event, event.a);
    if (!bad) continue;
    ++checked;
    const std::string success = success_of(run, *bad);
    if (success.empty()) continue;
    return fmt::format("{}: try {} failed ({}), and {}", place_of(event), event.a, run.history().text(event.name),
                       success);
  }
  return {};
}

// The event that tells how a dispatched publish ended on its rank; nullptr: none before `end`.
const Event* outcome_of(const Case& run, std::size_t dispatched, std::size_t end) {
  const Event& save = run.event(dispatched);
  for (const EventKind kind : {EventKind::acknowledged, EventKind::save_failed}) {
    const auto all = run.history().of(kind);
    for (auto at = std::upper_bound(all.begin(), all.end(), dispatched); at != all.end() && *at < end; ++at) {
      const Event& event = run.event(*at);
      const bool whole = kind == EventKind::acknowledged || event.b == 1;
      if (whole && event.attempt == save.attempt && event.rank == save.rank && event.step == save.step) return &event;
    }
  }
  return nullptr;
}

// Where the rank that dispatched comes to the point at which it must know how that ended: its next dispatch, or its end
// if it finished.
struct Reckoning {
  std::size_t position = 0;
  bool finished = false;
};
std::optional<Reckoning> reckoning_of(const Case& run, std::size_t dispatched) {
  const Event& save = run.event(dispatched);
  const auto next_of_rank = [&](EventKind kind) -> std::optional<std::size_t> {
    const auto all = run.history().of(kind);
    for (auto at = std::upper_bound(all.begin(), all.end(), dispatched); at != all.end(); ++at) {
      if (run.event(*at).attempt == save.attempt && run.event(*at).rank == save.rank) return *at;
    }
    return std::nullopt;
  };
  if (const auto next = next_of_rank(EventKind::save_dispatched)) return Reckoning{.position = *next};
  const auto end = next_of_rank(EventKind::rank_ended);
  if (end && run.event(*end).a == 0) return Reckoning{.position = *end, .finished = true};
  return std::nullopt;
}

std::string check_dispatched(const Case& run, std::int64_t& checked) {
  for (const std::uint32_t position : run.history().of(EventKind::save_dispatched)) {
    const auto reckoning = reckoning_of(run, position);
    if (!reckoning) continue;
    ++checked;
    const std::string_view then = reckoning->finished ? "finishes" : "dispatches another";
    const Event* outcome = outcome_of(run, position, reckoning->position);
    if (!outcome) {
      return fmt::format("{}: dispatches a save and {} before it is known how that ended",
                         place_of(run.event(position)), then);
    }
    if (!reckoning->finished || outcome->kind == EventKind::acknowledged) continue;
    return fmt::format("{}: finishes although its last save failed", place_of(run.event(position)));
  }
  return {};
}

}  // namespace

Verdict judge_errors_reach_the_job(const Case& run) {
  std::int64_t checked = 0;
  std::string wrong = check_faults(run, checked);
  if (wrong.empty()) wrong = check_failed_saves(run, checked);
  if (wrong.empty()) wrong = check_dispatched(run, checked);
  if (!wrong.empty()) return Verdict::fail(checked, std::move(wrong));
  return Verdict::pass(checked);
}

}  // namespace firedrill
