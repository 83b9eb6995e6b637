#include "harness/explore/record.h"

#include <map>
#include <tuple>

#include "faults/persistence/recorder.h"
#include "harness/mutants/mutants.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {

Result<RecordedRun> record_run(const ExploreSubject& subject, const Plan& plan) {
  Tables tables;
  History history(tables);
  Prober prober(make_protocol(plan.mutant), plan.job, subject.identity(), tables);
  SimResources resources;
  crash::Recorder recorder({});
  const Subject run = subject.to_run(plan);
  SimWorld world(resources, run, prober, history, {.probes = false, .recorder = &recorder});
  FD_TRY(const RunOutcome outcome, supervise(plan, world, world.observer(), history));
  return RecordedRun{
      .trace = recorder.trace(), .attempts = outcome.attempts, .finished = outcome.finished, .why = outcome.why};
}

std::vector<crash::OperationId> operations_before(const crash::Trace& trace, int attempt, std::int64_t step) {
  std::vector<crash::OperationId> before;
  for (crash::OperationId id = 0; id < trace.operations.size(); ++id) {
    const crash::Operation& operation = trace.operations[id];
    const int of = trace.programs[operation.program].attempt;
    if (of < attempt || (of == attempt && operation.step < step)) before.push_back(id);
  }
  return before;
}

std::vector<FaultSpec> kills_behind_each(const crash::Trace& trace, int attempt, std::int64_t step) {
  std::vector<FaultSpec> kills;
  std::map<std::tuple<int, std::int64_t, Phase, FileOp>, std::int64_t> seen;
  for (const crash::Operation& operation : trace.operations) {
    const crash::Program& program = trace.programs[operation.program];
    if (operation.kind != crash::OperationKind::file || program.attempt != attempt || operation.error) continue;
    const auto nth = ++seen[{program.rank, operation.step, operation.phase, operation.op}];
    if (operation.step < step) continue;
    FaultSpec kill;
    kill.kind = FaultKind::kill;
    kill.at.attempt = attempt;
    kill.at.rank = program.rank;
    kill.at.step = operation.step;
    kill.at.phase = operation.phase;
    kill.at.op = SeamOp::file;
    kill.at.file_op = operation.op;
    kill.at.nth = static_cast<decltype(kill.at.nth)>(nth);
    kill.at.when = When::after;
    kills.push_back(std::move(kill));
  }
  return kills;
}

}  // namespace firedrill
