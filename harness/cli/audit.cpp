// firedrill audit DIR [--against DIR]: verifies and lists checkpoints with the second decoder, and compares them tensor
// by tensor with those of another directory. Exit 2 on damage or on any difference. It reads only, but with
// --rebuild-catalog, which first makes a lost RocksDB catalog anew; exit 2 also if a checkpoint had to be left out that
// may have been validated. Exit 4 if the storage fails.
#include "harness/audit/audit.h"

#include <fmt/format.h>

#include <memory>

#include "engine/os/directory_file_system.h"
#include "harness/audit/rebuild.h"
#include "harness/cli/verb.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct AuditArguments {
  std::string directory;
  std::string against;
  bool tensors = false;
  bool rebuild = false;
};

// A folder that a run was kept in has the disk under test in `disk`.
fs::path root_of(const std::string& given) {
  const fs::path disk = fs::path(given) / "disk";
  std::error_code failed;  // opening says what is wrong
  return fs::is_directory(disk, failed) ? disk : fs::path(given);
}

Result<std::unique_ptr<DirectoryFileSystem>> open(const std::string& given) {
  const fs::path root = root_of(given);
  std::error_code failed;
  if (fs::is_symlink(root / "catalog", failed)) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("{} is a symbolic link, which is not followed", (root / "catalog").string()),
                 .hint = "put the directory itself in its place"};
  }
  return DirectoryFileSystem::open_root(root);
}

Error nothing_in(const std::string& given) {
  Error error{.code = Code::invalid_input, .message = fmt::format("{} holds no checkpoint and no attempt", given)};
  std::error_code failed;
  if (fs::exists(fs::path(given) / "plan.json", failed) && !fs::exists(fs::path(given) / "disk", failed)) {
    error.hint = "it was kept by a run in the sim world, whose disk is not kept: run with --world process to keep it";
  } else {
    error.hint = "give the root of the checkpoints, in which `shards` lies beside `manifests` or `catalog`";
  }
  return error;
}

Result<AuditReport> audit_of(const std::string& given) {
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, open(given));
  AuditReport report = audit_directory(*files);
  if (report.checkpoints.empty() && report.attempts.empty() && !report.damaged()) return nothing_in(given);
  return report;
}

Json json_of(const AuditReport& audit) {
  Json list = Json::array();
  for (const AuditedCheckpoint& checkpoint : audit.checkpoints) {
    Json tensors = Json::array();
    for (const AuditedTensor& tensor : checkpoint.contents->tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", tensor.dtype},
                         {"shape", tensor.shape},
                         {"digest", checkpoint.intact() ? Json(tensor.digest.hex()) : Json()}});
    }
    list.push_back({{"id", to_string(checkpoint.id)},
                    {"step", checkpoint.id.step},
                    {"committed", checkpoint.committed},
                    {"visible", checkpoint.visible},
                    {"validated", checkpoint.validated},
                    {"rejected", checkpoint.rejected},
                    {"tombstone", checkpoint.tombstone},
                    {"retired", checkpoint.retired()},
                    {"lost", checkpoint.lost_by_catalog},
                    {"intact", checkpoint.retired() ? Json() : Json(checkpoint.intact())},
                    {"run", checkpoint.contents->provenance.run},
                    {"layout", checkpoint.contents->layout},
                    {"bytes", checkpoint.contents->bytes},
                    {"state", checkpoint.intact() ? Json(checkpoint.contents->state.hex()) : Json()},
                    {"problems", checkpoint.contents->problems},
                    {"tensors", std::move(tensors)}});
  }
  return list;
}

Json json_of(const DirectoryComparison& comparison) {
  Json steps = Json::array();
  for (const StepComparison& step : comparison.steps) {
    Json differences = Json::array();
    for (const TensorDifference& difference : step.differences) {
      differences.push_back({{"tensor", difference.tensor}, {"how", difference.how}});
    }
    steps.push_back({{"step", step.step},
                     {"first", to_string(step.a)},
                     {"second", to_string(step.b)},
                     {"differences", std::move(differences)}});
  }
  return {{"equal", comparison.equal()},
          {"steps", std::move(steps)},
          {"only_in_first", comparison.only_in_a},
          {"only_in_second", comparison.only_in_b}};
}

Result<RebuiltCatalog> rebuild_in(const std::string& given) {
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, open(given));
  Result<RebuiltCatalog> rebuilt = rebuild_catalog(*files);
  if (rebuilt) return rebuilt;
  Error error = std::move(rebuilt).error();
  error.message = fmt::format("{}: {}", root_of(given).string(), error.message);
  return error;
}

Json json_of(const RebuiltCatalog& rebuilt) {
  Json taken = Json::array();
  for (const CheckpointId& id : rebuilt.taken) taken.push_back(to_string(id));
  Json left_out = Json::array();
  for (const auto& left : rebuilt.left_out) {
    left_out.push_back({{"id", to_string(left.id)}, {"why", left.why}, {"lost", left.lost}});
  }
  return {{"taken", std::move(taken)},
          {"left_out", std::move(left_out)},
          {"why", rebuilt.why},
          {"kept_as", rebuilt.kept_as}};
}

void add_words(Report& report, std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  report.lines.push_back(std::move(text));
}

// Bad input, or storage that fails.
VerbResult stopped(VerbResult result, const Error& error) {
  if (error.code == Code::invalid_input || error.code == Code::mismatch || error.code == Code::not_found) {
    result.mistakes.push_back(describe(error));
    return result;
  }
  result.report.lines.push_back(describe(error));
  result.report.more["error"] = describe(error);
  result.report.verdict = RunVerdict::unknown;
  result.report.exit_code = exit_code_of(result.report.verdict);
  return result;
}

VerbResult work(const AuditArguments& arguments) {
  VerbResult result;
  Report& report = result.report;
  bool bad = false;
  if (arguments.rebuild) {
    const Result<RebuiltCatalog> rebuilt = rebuild_in(arguments.directory);
    if (!rebuilt) return stopped(std::move(result), rebuilt.error());
    bad = !rebuilt->complete();
    add_words(report, in_words(*rebuilt));
    report.more["rebuilt"] = json_of(*rebuilt);
  }
  const Result<AuditReport> audit = audit_of(arguments.directory);
  if (!audit) return stopped(std::move(result), audit.error());
  bad = bad || audit->damaged();
  add_words(report, in_words(*audit, arguments.tensors));
  report.more["damaged"] = audit->damaged();
  report.more["problems"] = audit->problems;
  report.more["checkpoints"] = json_of(*audit);
  if (!arguments.against.empty()) {
    const Result<AuditReport> other = audit_of(arguments.against);
    if (!other) return stopped(std::move(result), other.error());
    const DirectoryComparison comparison = compare(*audit, *other);
    bad = bad || other->damaged() || !comparison.equal();
    if (other->damaged()) {
      add_words(report, fmt::format("{}:\n{}", arguments.against, in_words(*other, arguments.tensors)));
    }
    add_words(report, in_words(comparison));
    report.more["against"] = json_of(comparison);
    report.more["against"]["damaged"] = other->damaged();
  }
  report.verdict = bad ? RunVerdict::fail : RunVerdict::pass;
  report.exit_code = exit_code_of(report.verdict);
  return result;
}

}  // namespace

Work add_audit(CLI::App& app) {
  auto arguments = std::make_shared<AuditArguments>();
  app.add_option("directory", arguments->directory, "The root of checkpoints, or a folder that a run was kept in")
      ->required();
  app.add_option("--against", arguments->against, "Compare with the checkpoints of this directory, step by step");
  app.add_flag("--tensors", arguments->tensors, "List every tensor");
  app.add_flag("--rebuild-catalog", arguments->rebuild,
               "Make a RocksDB catalog that is lost or damaged anew, from the copies beside the shards");
  return [arguments](const CommonOptions&, Streams) { return work(*arguments); };
}

}  // namespace firedrill
