#include "harness/explore/workers.h"

#include <thread>

#include "harness/explore/oracle.h"

namespace firedrill {
namespace {

constexpr std::uint64_t look_at_the_clock_every = 64;
constexpr std::uint64_t tell_every = 1024;

std::optional<CheckpointId> newer(const std::optional<CheckpointId>& a, const std::optional<CheckpointId>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

}  // namespace

std::string_view to_string(EngineKind engine) { return engine == EngineKind::lazy ? "lazy" : "explicit"; }

Exploration Workers::run(EngineKind engine, const std::function<void(int job, Exploration& mine)>& work) {
  const auto began = std::chrono::steady_clock::now();
  const int jobs = std::max(1, options_.jobs);
  std::vector<Exploration> parts(static_cast<std::size_t>(jobs));
  std::vector<std::exception_ptr> thrown(parts.size());
  const auto run_job = [&](int job) {
    const auto at = static_cast<std::size_t>(job);
    parts[at].complete = true;
    try {
      work(job, parts[at]);
    } catch (...) {
      thrown[at] = std::current_exception();
      stop();
    }
  };
  std::vector<std::jthread> threads;
  for (int job = 1; job < jobs; ++job) threads.emplace_back(run_job, job);
  run_job(0);
  threads.clear();
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
  Exploration all{.engine = engine, .complete = true};
  for (Exploration& part : parts) {
    all.covered += part.covered;
    all.runs += part.runs;
    all.restored += part.restored;
    all.fresh += part.fresh;
    all.violations += part.violations;
    all.complete = all.complete && part.complete;
    for (Finding& finding : part.findings) all.findings.push_back(std::move(finding));
  }
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return all;
}

bool Workers::must_stop(Exploration& mine) {
  bool stopped = stop_.load(std::memory_order_relaxed) || mine.runs >= options_.runs_max;
  if (!stopped && options_.give_up && mine.runs % look_at_the_clock_every == 0) {
    stopped = std::chrono::steady_clock::now() >= *options_.give_up;
  }
  if (stopped) mine.complete = false;
  if (options_.progress && mine.runs % tell_every == tell_every - 1) options_.progress(runs_ += tell_every);
  return stopped;
}

void judge(Exploration& mine, const CheckAnswer& answer, crash::Partial& partial, Workers& workers) {
  const std::optional<CheckpointId> required = newer(partial.requirement(), workers.options().required);
  std::string what = violation_of(answer, required);
  if (what.empty()) {
    ++(answer.fresh ? mine.fresh : mine.restored);
    return;
  }
  ++mine.violations;
  if (mine.findings.size() < workers.options().findings_max) {
    Finding& finding = mine.findings.emplace_back();
    finding.what = std::move(what);
    finding.required = required;
    for (std::size_t i = 0; i < partial.depth(); ++i) finding.assignment.push_back(partial.assignment(i));
  }
  if (workers.options().stop_at_first) {
    mine.complete = false;
    workers.stop();
  }
}

}  // namespace firedrill
