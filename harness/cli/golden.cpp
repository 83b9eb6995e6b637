// firedrill golden record|verify JOB...
#include <fmt/format.h>

#include <memory>

#include "engine/base/text.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/pool.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

struct GoldenArguments {
  std::string action;
  std::vector<std::string> jobs;
  std::string directory;
  bool overwrite = false;
};

// What became of one job.
struct Outcome {
  std::string job;
  std::string key;
  std::string file;
  std::string status;  // "recorded", "unchanged", "verified", "different", "missing", "kept", "error"
  std::string detail;
  std::string final_digest;
  std::string numerics_key;
  int exit_code = 0;
};

Outcome failed(Outcome outcome, const Error& error) {
  const bool bad_input = error.code == Code::invalid_input || error.code == Code::not_found;
  outcome.status = "error";
  outcome.detail = describe(error);
  outcome.exit_code = bad_input ? 1 : 4;
  return outcome;
}

Outcome differs(Outcome outcome, std::string status, const GoldenDifference& difference) {
  outcome.status = std::move(status);
  outcome.detail = fmt::format("step {}, {}: {}", difference.step, difference.tensor, difference.how);
  outcome.exit_code = 2;
  return outcome;
}

Outcome record_one(Outcome outcome, const Golden& computed, const fs::path& file, bool overwrite) {
  const Result<Golden> old = read_golden(file);
  if (old && !overwrite) {
    const auto difference = firedrill::difference(*old, computed);
    if (difference) return differs(std::move(outcome), "kept", *difference);
    outcome.status = "unchanged";
    return outcome;
  }
  std::error_code ignored;  // writing says what is wrong
  fs::create_directories(file.parent_path(), ignored);
  if (const Status written = write_golden(computed, file); !written) return failed(std::move(outcome), written.error());
  outcome.status = "recorded";
  return outcome;
}

Outcome verify_one(Outcome outcome, const Golden& computed, const fs::path& file) {
  const Result<Golden> recorded = read_golden(file);
  if (!recorded && recorded.failed_with(Code::not_found)) {
    outcome.status = "missing";
    outcome.detail = fmt::format("no golden is recorded for {}; `firedrill golden record` makes one", outcome.key);
    outcome.exit_code = 4;
    return outcome;
  }
  if (!recorded) return failed(std::move(outcome), recorded.error());
  if (!(recorded->key == computed.key)) {
    outcome.status = "missing";
    outcome.detail =
        fmt::format("{} is of another key ({}) and is never compared", file.string(), to_string(recorded->key));
    outcome.exit_code = 4;
    return outcome;
  }
  const auto difference = firedrill::difference(*recorded, computed);
  if (difference) return differs(std::move(outcome), "different", *difference);
  outcome.status = "verified";
  return outcome;
}

Outcome treat(const GoldenArguments& arguments, const fs::path& job_file, const Job& job, Session& session) {
  Outcome outcome{.job = job.name};
  const Result<Golden> computed = session.record(job);
  if (!computed) return failed(std::move(outcome), computed.error());
  outcome.key = to_string(computed->key);
  outcome.numerics_key = computed->key.numerics;
  outcome.final_digest = computed->final_state().hex();
  const fs::path directory =
      arguments.directory.empty() ? golden_directory_of(job_file) : fs::path(arguments.directory);
  const fs::path file = directory / golden_file_name(job.name, computed->key);
  outcome.file = file.string();
  return arguments.action == "record" ? record_one(std::move(outcome), *computed, file, arguments.overwrite)
                                      : verify_one(std::move(outcome), *computed, file);
}

std::vector<fs::path> job_files(const GoldenArguments& arguments, const std::string& filter) {
  std::vector<fs::path> files;
  for (const std::string& given : arguments.jobs) {
    std::error_code failed;  // reading says what is wrong
    const std::vector<fs::path> found =
        fs::is_directory(given, failed) ? yaml_files(given) : std::vector<fs::path>{given};
    for (const fs::path& file : found) {
      if (matches_filter(filter, file)) files.push_back(file);
    }
  }
  return files;
}

void add_to(Report& report, const Outcome& outcome) {
  report.more["goldens"].push_back({{"job", outcome.job},
                                    {"status", outcome.status},
                                    {"key", outcome.key},
                                    {"file", outcome.file},
                                    {"final_digest", outcome.final_digest},
                                    {"detail", outcome.detail}});
  report.lines.push_back(fmt::format("{:<10} {:<8} {}{}{}", outcome.status, outcome.job, outcome.final_digest,
                                     outcome.file.empty() ? "" : "  " + outcome.file,
                                     outcome.detail.empty() ? "" : "\n           " + outcome.detail));
  if (outcome.status == "kept") {
    report.lines.emplace_back("           the recorded one differs and was kept; --overwrite replaces it");
  }
  if (report.environment.numerics_key.empty()) report.environment.numerics_key = outcome.numerics_key;
}

VerbResult work(const GoldenArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  std::vector<Job> jobs;
  const std::vector<fs::path> files = job_files(arguments, common.filter);
  for (const fs::path& file : files) {
    Loaded<Job> job = load_job(file, {.set = common.set, .properties = {}, .world = {}});
    result.mistakes.insert(result.mistakes.end(), job.mistakes.begin(), job.mistakes.end());
    if (job) jobs.push_back(std::move(*job));
  }
  if (files.empty()) result.mistakes.push_back("no job file is among what was given");
  if (!common.mutant.empty()) result.mistakes.push_back("--mutant: a golden is what an engine without one gives");
  if (!result.mistakes.empty()) return result;

  std::vector<Outcome> outcomes(jobs.size());
  {
    Progress progress(streams, jobs.size(), common.quiet);
    PoolOptions pool{.jobs = common.jobs};
    pool.session.progress = [&progress](std::string_view what) { progress.doing(what); };
    run_pool(jobs.size(), pool, [&](std::size_t i, Session& session) {
      outcomes[i] = treat(arguments, files[i], jobs[i], session);
      progress.done(fmt::format("{} {}", outcomes[i].status, jobs[i].name));
    });
  }
  Report& report = result.report;
  std::vector<int> codes;
  report.more["goldens"] = nlohmann::ordered_json::array();
  for (const Outcome& outcome : outcomes) {
    add_to(report, outcome);
    codes.push_back(outcome.exit_code);
  }
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  return result;
}

}  // namespace

Work add_golden(CLI::App& app) {
  auto arguments = std::make_shared<GoldenArguments>();
  app.add_option("action", arguments->action, "record | verify")
      ->required()
      ->check(CLI::IsMember({"record", "verify"}));
  app.add_option("job", arguments->jobs, "Job files, or directories of them")->required();
  app.add_option("--golden", arguments->directory, "Where goldens lie (default: golden/ beside scenarios/)");
  app.add_flag("--overwrite", arguments->overwrite, "Replace a recorded golden of the same key that differs");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
