// firedrill report RUN_DIR|REPORT [--html FILE] [--trace FILE] [--metrics FILE]: what was kept of a run, told in other
// forms.
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "harness/cli/kept_run.h"
#include "harness/cli/verb.h"
#include "harness/cli/write_file.h"
#include "harness/report/page.h"
#include "harness/report/trace.h"
#include "harness/run/run.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ReportArguments {
  std::string given;
  std::string html;
  std::string trace;
  std::string metrics;
};

// What a folder or a report file holds. A report of several runs, or of a verb that keeps no history, has none.
struct Kept {
  Json report;
  std::unique_ptr<KeptRun> run;
};

Result<Json> read_report(const fs::path& file) {
  FD_TRY_VOID(may_be_read(file));
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) {
    return Error{.code = Code::not_found,
                 .message = fmt::format("cannot read {}", file.string()),
                 .hint = "give a folder that `--out` kept, or a file that `--json` wrote"};
  }
  Json report = Json::parse(text.str(), nullptr, false);
  if (report.is_object() && report.value("schema", Json()) == "firedrill.report/1" &&
      report.value("verb", Json()).is_string() && report.value("verdict", Json()).is_string()) {
    return report;
  }
  return Error{.code = Code::invalid_input,
               .message = fmt::format("{} is not a report: it does not say schema: firedrill.report/1", file.string()),
               .hint = "give a folder that `--out` kept, or a file that `--json` wrote"};
}

// Of a crash check `runs` is how often the recovery was run.
std::size_t number_of_runs(const Json& report) {
  const Json runs = report.value("runs", Json());
  return runs.is_number_unsigned() ? runs.get<std::size_t>() : runs.is_array() ? runs.size() : 0;
}

Status read_kept(const fs::path& given, Kept& kept) {
  FD_TRY(const fs::file_type kind, kind_of(given));
  const bool is_folder = kind == fs::file_type::directory;
  FD_TRY(kept.report, read_report(is_folder ? given / "report.json" : given));
  if (!is_folder) return {};
  FD_TRY(kept.run, open_kept_run(given));
  return {};
}

Error no_history(const ReportArguments& arguments, std::string_view option) {
  return {.code = Code::invalid_input,
          .message = fmt::format("{}: {} has no history.jsonl, from which it is made", option, arguments.given),
          .hint = "give the folder of one run, kept by `firedrill run SCENARIO --out DIR`"};
}

Status write_all(const ReportArguments& arguments, Kept& kept, Report& report) {
  FD_TRY_VOID(read_kept(arguments.given, kept));
  const auto wrote = [&report](const std::string& file) { report.lines.push_back(fmt::format("wrote {}", file)); };
  if (!arguments.html.empty()) {
    FD_TRY_VOID(write_file(arguments.html, to_page(kept.report, kept.run ? &kept.run->history : nullptr)));
    wrote(arguments.html);
  }
  if (!arguments.trace.empty() && !kept.run) return no_history(arguments, "--trace");
  if (!arguments.metrics.empty() && !kept.run) return no_history(arguments, "--metrics");
  if (!kept.run) {
    report.lines.push_back(fmt::format("{}: {}, {} runs; a history to tell more from was not kept",
                                       kept.report.value("verb", "?"), kept.report.value("verdict", "?"),
                                       number_of_runs(kept.report)));
    return {};
  }
  const Plan& plan = kept.run->plan;
  const History& history = kept.run->history;
  const Metrics metrics = metrics_of(history, plan, account_of(history, plan));
  report.more["metrics"] = json_of(metrics);
  report.lines.push_back(fmt::format("{}  {}  ({}, {}, seed {})", kept.report.value("verdict", "?"), plan.scenario,
                                     to_string(plan.world), to_string(plan.layout), plan.seed));
  if (history.of(EventKind::run_ended).empty()) {
    report.more["ends_early"] = true;
    report.lines.emplace_back("  the history ends before the run did: what follows is of the part that is there");
  }
  report.lines.push_back(to_text(metrics));
  if (!arguments.trace.empty()) {
    FD_TRY_VOID(write_file(arguments.trace, to_perfetto(history, "firedrill " + plan.scenario)));
    wrote(arguments.trace);
  }
  if (!arguments.metrics.empty()) {
    const MetricLabels labels{
        .scenario = plan.scenario, .world = std::string(to_string(plan.world)), .layout = to_string(plan.layout)};
    FD_TRY_VOID(write_file(arguments.metrics, to_open_metrics(metrics, labels)));
    wrote(arguments.metrics);
  }
  return {};
}

VerbResult work(const ReportArguments& arguments, const CommonOptions& common) {
  VerbResult result;
  const std::vector<std::pair<std::string, std::string>> targets = {{"--html", arguments.html},
                                                                    {"--trace", arguments.trace},
                                                                    {"--metrics", arguments.metrics},
                                                                    {"--json", common.json},
                                                                    {"--junit", common.junit}};
  result.mistakes = mistakes_in_targets(targets);
  for (std::string& mistake : mistakes_in_targets_of(arguments.given, targets)) {
    result.mistakes.push_back(std::move(mistake));
  }
  if (!result.mistakes.empty()) return result;
  Kept kept;
  if (const Status done = write_all(arguments, kept, result.report); !done) {
    result.mistakes.push_back(describe(done.error()));
  }
  return result;
}

}  // namespace

Work add_report(CLI::App& app) {
  auto arguments = std::make_shared<ReportArguments>();
  app.add_option("run", arguments->given, "A folder that a run was kept in, or a report file")->required();
  app.add_option("--html", arguments->html, "Write one page for a browser, which needs no network");
  app.add_option("--trace", arguments->trace, "Write a trace for ui.perfetto.dev");
  app.add_option("--metrics", arguments->metrics, "Write the metrics as OpenMetrics text");
  return [arguments](const CommonOptions& common, Streams) { return work(*arguments, common); };
}

}  // namespace firedrill
