#include "harness/explore/shrink/shrink.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

using Clock = std::chrono::steady_clock;

// Of a run in the process world, which has no trials.
Result<Failure> failure_in_processes(Session& session, const Plan& plan, std::string_view asked) {
  FD_TRY(const RunReport report, session.run(plan));
  Failure failure;
  for (const PropertyLine& property : report.properties) {
    if (property.verdict != to_string(Outcome::fail)) continue;
    if (failure.property.empty() || property.name == asked) failure = {property.name, property.evidence};
  }
  if (!failure.property.empty()) return failure;
  if (report.verdict == RunVerdict::liveness) return Failure{std::string(failed_liveness), report.reason};
  if (report.verdict == RunVerdict::fail) return Failure{std::string(failed_check), report.reason};
  return Failure{};
}

class Search {
 public:
  Search(const Plan& failing, const StillFails& still_fails, const ShrinkBounds& bounds)
      : still_fails_(still_fails), bounds_(bounds), began_(Clock::now()) {
    shrunk_.plan = failing;
    tried_.insert(key_of(failing));
    legal_ = mistakes_in(failing).empty();
    survivable_ = mistakes_beyond_budget(failing).empty();
  }

  Result<Shrunk> run() {
    bool better = true;
    while (better && !out_of_bounds()) {
      better = false;
      for (const Edit& edit : edits()) {
        FD_TRY(const bool helped, exhaust(edit));
        better = better || helped;
      }
    }
    shrunk_.complete = !out_of_bounds();
    shrunk_.seconds = seconds();
    return std::move(shrunk_);
  }

 private:
  // Takes what the edit gives as long as something of it fails.
  Result<bool> exhaust(const Edit& edit) {
    bool helped = false;
    for (bool again = true; again;) {
      again = false;
      for (Plan& candidate : edit.of(shrunk_.plan)) {
        if (out_of_bounds()) return helped;
        FD_TRY(const bool fails, try_out(candidate));
        if (!fails) continue;
        shrunk_.plan = std::move(candidate);
        legal_ = legal_ || mistakes_in(shrunk_.plan).empty();
        survivable_ = survivable_ || mistakes_beyond_budget(shrunk_.plan).empty();
        helped = again = true;
        break;
      }
    }
    return helped;
  }

  Result<bool> try_out(Plan& candidate) {
    prepare_job(candidate.mutant, candidate.job);  // as `run --mutant` will
    candidate.run_id = run_id_of(candidate.job);
    candidate.corpus_digest.reset();
    if (!tried_.insert(key_of(candidate)).second) return false;
    if (legal_ && !mistakes_in(candidate).empty()) return false;
    if (survivable_ && !mistakes_beyond_budget(candidate).empty()) return false;
    ++shrunk_.trials;
    return still_fails_(candidate);
  }

  static std::string key_of(const Plan& plan) {
    Plan copy = plan;
    copy.run_id.clear();
    copy.corpus_digest.reset();
    return to_json(copy);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  bool out_of_bounds() const { return shrunk_.trials >= bounds_.trials_max || seconds() >= bounds_.seconds_max; }

  const StillFails& still_fails_;
  ShrinkBounds bounds_;
  Clock::time_point began_;
  Shrunk shrunk_;
  std::set<std::string> tried_;
  bool legal_ = false;
  bool survivable_ = false;
};

}  // namespace

Result<Failure> failure_of(Session& session, const Plan& plan, std::string_view asked) {
  if (plan.world == WorldKind::process) return failure_in_processes(session, plan, asked);
  FD_TRY(const Trial trial, session.trial(plan));
  if (trial.verdict == RunVerdict::pass || trial.verdict == RunVerdict::unknown) return Failure{};
  Failure failure;
  for (const Judged& each : judge_all(Case(session.history(), plan))) {
    if (each.verdict.outcome != Outcome::fail) continue;
    if (failure.property.empty() || each.property->name == asked) {
      failure = {std::string(each.property->name), each.verdict.evidence};
    }
  }
  if (!failure.property.empty()) return failure;
  const bool stopped = trial.verdict == RunVerdict::liveness;
  return Failure{std::string(stopped ? failed_liveness : failed_check), trial.evidence};
}

Result<bool> fails_in(Session& session, const Plan& plan, std::string_view property) {
  const Property* known = find_property(property);
  if (plan.world == WorldKind::process || known == nullptr) {
    FD_TRY(const Failure failure, failure_of(session, plan));
    return failure.property == property;
  }
  FD_TRY(const Trial trial, session.trial(plan));
  if (trial.verdict == RunVerdict::pass) return false;
  return judge(*known, Case(session.history(), plan)).outcome == Outcome::fail;
}

Result<Shrunk> shrink_by(const Plan& failing, const StillFails& still_fails, const ShrinkBounds& bounds) {
  return Search(failing, still_fails, bounds).run();
}

Result<Shrunk> shrink(Session& session, const Plan& failing, std::string_view property, const ShrinkBounds& bounds) {
  FD_TRY(const bool fails, fails_in(session, failing, property));
  if (!fails) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("the plan does not fail {}: there is nothing to shrink", property),
                 .hint = "`firedrill replay` shows what it does"};
  }
  std::int64_t controls = 0;
  const auto right_engine_passes = [&](Plan plan) -> Result<bool> {
    plan.mutant.clear();
    ++controls;
    if (plan.world == WorldKind::process) {
      FD_TRY(const Failure failure, failure_of(session, plan));
      return failure.property.empty();
    }
    FD_TRY(const Trial trial, session.trial(plan));
    return trial.verdict == RunVerdict::pass;
  };
  bool with_control = false;
  if (!failing.mutant.empty()) {
    FD_TRY(with_control, right_engine_passes(failing));
  }
  const StillFails still_fails = [&](const Plan& candidate) -> Result<bool> {
    FD_TRY(const bool still, fails_in(session, candidate, property));
    if (!still || !with_control) return still;
    return right_engine_passes(candidate);
  };
  FD_TRY(Shrunk shrunk, shrink_by(failing, still_fails, bounds));
  FD_TRY(shrunk.failure, failure_of(session, shrunk.plan, property));
  shrunk.trials += controls + 2;
  return shrunk;
}

Plan expecting(Plan plan, std::string_view property) {
  plan.expect = {};
  if (property == failed_liveness) plan.expect.kind = Expectation::Kind::liveness;
  if (find_property(property) != nullptr) {
    plan.expect = {.kind = Expectation::Kind::fail, .property = std::string(property)};
  }
  return plan;
}

std::string words_about(const Plan& before, const Plan& after, const Failure& failure) {
  std::string text = fmt::format("Shrunk from {} (seed {}).\nBefore: {}.\nAfter: {}.\n", before.scenario, before.seed,
                                 size_in_words(before), size_in_words(after));
  if (!after.mutant.empty()) {
    const Mutant* mutant = find_mutant(after.mutant);
    text += fmt::format("With the mutant {}: {}.\n", after.mutant, mutant != nullptr ? mutant->summary : "?");
  }
  return text + fmt::format("Fails {}: {}", failure.property, failure.evidence);
}

}  // namespace firedrill
