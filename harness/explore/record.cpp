#include "harness/explore/record.h"

#include <map>
#include <set>
#include <tuple>

#include "faults/persistence/recorder.h"
#include "harness/mutants/mutants.h"
#include "harness/world/sim_world.h"
#include "harness/world/supervisor.h"

namespace firedrill {
namespace {

// Does what a successful operation did to a disk of paths.
void replay(const crash::Operation& operation, std::map<std::string, crash::BaseEntry>& disk) {
  if (operation.kind != crash::OperationKind::file || operation.error) return;
  const auto enter = [&](FileKind kind) {
    disk[operation.path] = {.path = operation.path, .kind = kind, .inode = operation.inode};
    if (kind == FileKind::file) disk[operation.path].bytes = Value::copy_of(std::string_view());
  };
  switch (operation.op) {
    case FileOp::create: enter(FileKind::file); break;
    case FileOp::make_directory: enter(FileKind::directory); break;
    case FileOp::remove: disk.erase(operation.path); break;
    case FileOp::rename: {
      std::map<std::string, crash::BaseEntry> moved;
      const std::string below = operation.path + "/";
      for (auto at = disk.begin(); at != disk.end();) {
        const bool moves = at->first == operation.path || at->first.starts_with(below);
        if (moves) {
          crash::BaseEntry entry = at->second;
          entry.path = operation.second + entry.path.substr(operation.path.size());
          moved[entry.path] = std::move(entry);
        }
        at = moves ? disk.erase(at) : std::next(at);
      }
      for (auto& [path, entry] : moved) disk[path] = std::move(entry);
      break;
    }
    case FileOp::write:
      for (auto& [path, entry] : disk) {
        if (entry.inode != operation.inode) continue;
        std::string bytes(entry.bytes.text());
        const auto end = static_cast<std::size_t>(operation.offset) + operation.bytes.size();
        if (bytes.size() < end) bytes.resize(end, '\0');
        bytes.replace(static_cast<std::size_t>(operation.offset), operation.bytes.size(), operation.bytes.text());
        entry.bytes = Value::copy_of(std::string_view(bytes));
      }
      break;
    default: break;
  }
}

}  // namespace

Result<RecordedRun> record_run(const ExploreSubject& subject, const Plan& plan, const ProtocolFactory& protocol) {
  Tables tables;
  History history(tables);
  Prober prober(make_protocol(plan.mutant), plan.job, subject.identity(), tables);
  SimResources resources;
  crash::Recorder recorder({});
  Subject run = subject.to_run(plan);
  if (protocol) run.protocol = protocol;
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

crash::Trace settled(const crash::Trace& trace, const std::vector<crash::OperationId>& before) {
  const std::set<crash::OperationId> gone(before.begin(), before.end());
  crash::Trace rest{.base = {}, .programs = trace.programs, .operations = {}};
  std::map<std::string, crash::BaseEntry> disk;  // by path: parents come before their children
  for (const crash::BaseEntry& entry : trace.base) disk[entry.path] = entry;
  std::map<crash::OperationId, crash::OperationId> renumbered;
  for (crash::OperationId id = 0; id < trace.operations.size(); ++id) {
    crash::Operation operation = trace.operations[id];
    if (gone.contains(id)) {
      replay(operation, disk);
      continue;
    }
    std::vector<crash::OperationId> after;
    for (const crash::OperationId earlier : operation.after) {
      if (const auto kept = renumbered.find(earlier); kept != renumbered.end()) after.push_back(kept->second);
    }
    operation.after = std::move(after);
    renumbered[id] = static_cast<crash::OperationId>(rest.operations.size());
    rest.operations.push_back(std::move(operation));
  }
  for (auto& [path, entry] : disk) rest.base.push_back(std::move(entry));
  return rest;
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
