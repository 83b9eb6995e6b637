// The check of an existing checkpoint: the second decoder verifies every byte of it, then all ranks of the intended
// layout find and restore it with the engine's own code, and what each restored is compared, tensor by tensor, with
// what the second decoder read. Nothing is written to it (scratch.h). Everything is done in disposable processes.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "engine/ckpt/protocol.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/data/corpus.h"
#include "engine/model/numerics.h"
#include "engine/model/transformer.h"
#include "engine/os/directory_file_system.h"
#include "engine/os/process_host.h"
#include "engine/seam/silent_observer.h"
#include "engine/train/device/job_compute.h"
#include "engine/train/state.h"
#include "harness/audit/audit.h"
#include "harness/plan/plan.h"
#include "harness/preflight/check.h"
#include "harness/preflight/meeting.h"
#include "harness/preflight/probes.h"
#include "harness/preflight/restore.h"
#include "harness/preflight/scratch.h"

namespace firedrill::preflight {
namespace {

constexpr std::chrono::seconds deadline{120};

// Finding and restoring asks for no keys.
class NoStore final : public Store {
 public:
  Status set(std::string_view, std::string_view) override { return no(); }
  Result<std::string> get(std::string_view, Time) override { return no(); }
  Result<std::int64_t> add(std::string_view, std::int64_t) override { return no(); }

 private:
  static Error no() { return Error{.code = Code::unavailable, .message = "there is no store"}; }
};

struct Restored {
  std::optional<CheckpointId> found;
  int tensors = 0;  // compared as a whole
  int runs = 0;     // of which the rank has a part: restoring has verified its digests
  std::vector<std::string> different;
};

// What rank 0 tells the others of its audit.
Json audit_in(FileSystem& files) {
  const AuditReport report = audit_directory(files);
  Json said = {{"damaged", report.damaged()}, {"checkpoints", Json::array()}, {"problems", report.problems}};
  for (const AuditedCheckpoint& checkpoint : report.checkpoints) {
    if (!checkpoint.stands()) continue;
    said["checkpoints"].push_back({{"id", to_string(checkpoint.id)}, {"intact", checkpoint.intact()}});
    if (checkpoint.contents) {
      for (const std::string& problem : checkpoint.contents->problems) {
        said["problems"].push_back(fmt::format("{}: {}", to_string(checkpoint.id), problem));
      }
    }
  }
  const AuditedCheckpoint* const newest = report.newest();
  said["attempt"] = report.attempts.empty() ? 1 : report.attempts.back() + 1;
  if (newest == nullptr) return said;
  said["newest"] = to_string(newest->id);
  said["run"] = newest->contents->provenance.run;
  said["tensors"] = Json::object();
  if (newest->intact()) {
    for (const AuditedTensor& tensor : newest->contents->tensors) said["tensors"][tensor.name] = tensor.digest.hex();
  }
  return said;
}

void compare(const StateView& state, const Json& tensors, Restored& restored) {
  for (const StateGroup& group : state) {
    for (const TensorSlot& slot : group.tensors) {
      if (!slot.whole()) {
        ++restored.runs;
        continue;
      }
      ++restored.tensors;
      const std::string digest = group.value.slice(slot.offset, slot.count()).digest_recomputed().hex();
      const auto expected = tensors.find(slot.name);
      if (expected == tensors.end()) {
        restored.different.push_back(fmt::format("{} is not in the checkpoint", slot.name));
      } else if (*expected != digest) {
        restored.different.push_back(
            fmt::format("{} has digest {} and not {}", slot.name, digest, expected->get<std::string>()));
      }
    }
  }
}

Result<Restored> restore(const Probe& probe, const Plan& plan, FileSystem& files, const Json& audited,
                         Meeting& meeting) {
  const Job& job = plan.job;
  set_numerics(job.numerics);
  FD_TRY(const Corpus corpus, load_corpus(job.data.corpus));
  ScratchFileSystem scratch(files);
  JobCompute compute(job, probe.rank);
  AbortSignal abort;
  const Epoch epoch = meeting.epoch();
  SteadyClock clock(epoch, abort);
  ProcessHost host(node_of(job, probe.rank), epoch);
  SilentObserver observer;
  NoStore store;
  Position position{.attempt = audited.at("attempt"), .rank = probe.rank, .step = 0, .phase = Phase::find};
  TransportCollectives collectives(meeting.transport(), compute, position, observer);
  Parts parts{.files = scratch,
              .transport = meeting.transport(),
              .collectives = collectives,
              .store = store,
              .compute = compute,
              .clock = clock,
              .host = host,
              .observer = observer,
              .position = position};
  const Groups groups = groups_of(job, plan.layout, probe.rank);
  const RunIdentity identity =
      make_run_identity(job, plan.layout, audited.at("run").get<std::string>(), corpus.digest, numerics_key_of(job));
  const CheckpointContext context{
      .parts = parts, .job = job, .world = groups.world, .identity = identity, .attempt = position.attempt};
  Protocol protocol;
  probe.line.doing("claim, in memory");
  FD_TRY_VOID(protocol.claim_attempt(context));
  probe.line.doing("find");
  FD_TRY(const FindResult found, protocol.find(context));
  Restored restored{.found = found.chosen};
  if (found.chosen) {
    probe.line.doing(fmt::format("restore of {}", to_string(*found.chosen)));
    const Model model(job);
    StateView state = blank_view(model, holdings_of(job, plan.layout, model, probe.rank));
    FD_TRY_VOID(protocol.restore(context, found, state));
    if (to_string(*found.chosen) == audited.at("newest")) compare(state, audited.at("tensors"), restored);
  }
  return restored;
}

std::unique_ptr<DirectoryFileSystem> open_directory(const Probe& probe) {
  const auto directory = probe.work.at("directory").get<std::string>();
  probe.line.doing(fmt::format("opening {}", directory));
  Result<std::unique_ptr<DirectoryFileSystem>> files = DirectoryFileSystem::open_root(directory);
  if (files) return std::move(*files);
  throw ProbeFailed({.why = describe(files.error()),
                     .needed = "a directory that can be opened",
                     .remedy = "give the root of the checkpoints, in which `shards` lies"});
}

Json work_of(const Options& options) {
  Plan plan;
  plan.run_id = "preflight";
  plan.job = options.job;
  plan.layout = options.layout;
  return {{"probe", "restore"}, {"plan", to_json(plan)}, {"directory", options.restore.string()}};
}

}  // namespace

// A place for checkpoints may be missing; one to restore from may not, nor hold none.
Json probe_look(const Probe& probe) {
  namespace fs = std::filesystem;
  const fs::path directory = probe.work.at("directory").get<std::string>();
  if (probe.work.value("may_be_missing", false)) {
    probe.line.doing(fmt::format("looking at {}", directory.string()));
    std::error_code failed;  // the check says what is wrong
    const fs::file_status status = fs::status(directory, failed);
    if (!fs::exists(status) || fs::is_directory(status)) return nullptr;
    throw ProbeFailed({.why = "it is not a directory",
                       .needed = "a directory, or a name that is free",
                       .remedy = "give the directory that will hold the checkpoints"});
  }
  const std::unique_ptr<DirectoryFileSystem> files = open_directory(probe);
  for (const char* name : {"shards", "manifests", "catalog"}) {
    if (!files->stat(name).failed_with(Code::not_found)) return nullptr;
  }
  throw ProbeFailed({.why = "there is no `shards` in it, nor records of checkpoints",
                     .needed = "a directory with checkpoints",
                     .remedy = "give the root of the checkpoints, in which `shards` lies"});
}

Json probe_restore(const Probe& probe) {
  const Result<Plan> plan = plan_from_json(probe.work.at("plan").get<std::string>(), "preflight");
  FD_CHECK(plan.ok(), "{}", describe(plan.error()));
  const std::unique_ptr<DirectoryFileSystem> files = open_directory(probe);
  probe.line.doing(fmt::format("auditing {}", probe.work.at("directory").get<std::string>()));
  const Json audited = probe.line.meet(probe.rank == 0 ? audit_in(*files) : Json())[0];
  Json said = {{"audit", audited}};
  if (!audited.contains("newest")) return said;
  Result<std::unique_ptr<Meeting>> meeting = Meeting::of(probe);
  if (!meeting) throw no_exchange(meeting.error());
  const Result<Restored> restored = restore(probe, *plan, *files, audited, **meeting);
  probe.line.doing("waiting for the others to restore");
  probe.line.meet();  // nobody closes a connection that another still uses
  if (!restored) {
    said["error"] = describe(restored.error());
    return said;
  }
  said["found"] = restored->found ? to_string(*restored->found) : "nothing";
  said["tensors"] = restored->tensors;
  said["runs"] = restored->runs;
  said["different"] = restored->different;
  return said;
}

CheckResult check_restore(Bench& bench) {
  CheckResult result;
  const Options& options = bench.options;
  if (options.restore.empty()) {
    result.findings.push_back({Standing::skipped, "not asked for (--restore DIR)", "", "", ""});
    return result;
  }
  const std::string where = options.restore.string();
  const Result<std::vector<RankAnswer>> answers = bench.ask(work_of(options), options.layout.world_size(), deadline);
  if (!answers) {
    result.findings.push_back(
        {Standing::unknown, answers.error().message, "processes that restore", "here", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, where, deadline, "look at the mount, and at what the rank was doing");
  if (!result.findings.empty()) return result;
  std::vector<Json> said;
  for (const RankAnswer& answer : *answers) said.push_back(answer.measured);
  result.measured = said.front();
  judge_restore(said, where, result);
  return result;
}

}  // namespace firedrill::preflight
