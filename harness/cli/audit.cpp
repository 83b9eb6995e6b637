// firedrill audit DIR [--against DIR]: verifies and lists checkpoints with the second decoder, and compares them tensor
// by tensor with those of another directory. Exit 2 on damage or on any difference. It reads only.
#include "harness/audit/audit.h"

#include <fmt/format.h>

#include <memory>

#include "engine/os/directory_file_system.h"
#include "harness/cli/verb.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct AuditArguments {
  std::string directory;
  std::string against;
  bool tensors = false;
};

// A folder that a run was kept in has the disk under test in `disk`.
fs::path root_of(const std::string& given) {
  const fs::path disk = fs::path(given) / "disk";
  return fs::is_directory(disk) ? disk : fs::path(given);
}

Result<AuditReport> audit_of(const std::string& given) {
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, DirectoryFileSystem::open_root(root_of(given)));
  AuditReport report = audit_directory(*files);
  if (report.checkpoints.empty() && report.attempts.empty()) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("{} holds no checkpoint and no attempt", given),
                 .hint = "give the root of the checkpoints, in which `manifests` and `shards` lie"};
  }
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
                    {"intact", checkpoint.intact()},
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

void add_words(Report& report, std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  report.lines.push_back(std::move(text));
}

VerbResult work(const AuditArguments& arguments) {
  VerbResult result;
  Report& report = result.report;
  const Result<AuditReport> audit = audit_of(arguments.directory);
  if (!audit) {
    result.mistakes.push_back(describe(audit.error()));
    return result;
  }
  bool bad = audit->damaged();
  add_words(report, in_words(*audit, arguments.tensors));
  report.more["damaged"] = audit->damaged();
  report.more["problems"] = audit->problems;
  report.more["checkpoints"] = json_of(*audit);
  if (!arguments.against.empty()) {
    const Result<AuditReport> other = audit_of(arguments.against);
    if (!other) {
      result.mistakes.push_back(describe(other.error()));
      return result;
    }
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
  return [arguments](const CommonOptions&, Streams) { return work(*arguments); };
}

}  // namespace firedrill
