// firedrill diagnose RUN_DIR [--against RUN_DIR]: who held a run up, and why.
#include "harness/diagnose/diagnose.h"

#include <fmt/format.h>

#include <memory>

#include "harness/cli/kept_run.h"
#include "harness/cli/verb.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

struct DiagnoseArguments {
  std::string given;
  std::string against;
};

Result<Figures> figures_in(const fs::path& folder) {
  FD_TRY(const std::unique_ptr<KeptRun> kept, open_kept_run(folder));
  if (kept == nullptr) {
    return Error{.code = Code::not_found,
                 .message = fmt::format("{} has no history.jsonl, from which a run is diagnosed", folder.string()),
                 .hint = "give the folder of one run, kept by `firedrill run SCENARIO --out DIR`"};
  }
  if (kept->history.of(EventKind::time_spent).empty()) {
    return Error{
        .code = Code::invalid_input,
        .message = fmt::format("the history in {} does not say what its ranks spent their time on", folder.string()),
        .hint = "run the scenario again with `firedrill run SCENARIO --out DIR`, which keeps accounts"};
  }
  return figures_of(kept->history, kept->plan);
}

Status look(const DiagnoseArguments& arguments, Report& report) {
  FD_TRY(Figures figures, figures_in(arguments.given));
  const Plan plan = figures.plan;
  Diagnosis diagnosis;
  if (arguments.against.empty()) {
    diagnosis = diagnose(std::move(figures));
  } else {
    FD_TRY(const Figures against, figures_in(arguments.against));
    FD_TRY_VOID(comparable(plan, against.plan));
    diagnosis = diagnose(std::move(figures), against);
  }
  report.more["diagnosis"] = json_of(diagnosis);
  report.lines.push_back(
      fmt::format("{}  ({}, {}, seed {})", plan.scenario, to_string(plan.world), to_string(plan.layout), plan.seed));
  report.lines.push_back(to_text(diagnosis));
  return {};
}

VerbResult work(const DiagnoseArguments& arguments) {
  VerbResult result;
  if (const Status done = look(arguments, result.report); !done) result.mistakes.push_back(describe(done.error()));
  return result;
}

}  // namespace

Work add_diagnose(CLI::App& app) {
  auto arguments = std::make_shared<DiagnoseArguments>();
  app.add_option("run", arguments->given, "The folder that a run was kept in")->required();
  app.add_option("--against", arguments->against, "Another run, which was as fast as it should be");
  return [arguments](const CommonOptions&, Streams) { return work(*arguments); };
}

}  // namespace firedrill
