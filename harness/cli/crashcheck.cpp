// firedrill crashcheck SCENARIO: records the scenario's run and recovers from every content of the disk that a power
// loss may legally leave of it.
#include "harness/explore/crashcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "faults/persistence/trace_file.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/kept_run.h"
#include "harness/cli/progress.h"
#include "harness/cli/verb.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

using crash::ProfileKind;

struct CrashCheckArguments {
  std::string scenario;
  std::string profile;  // "": the scenario's; with a mutant all
  std::string engine;
  std::string trace;
  std::optional<double> seconds;
  bool hash_again = false;
};

std::vector<ProfileKind> profiles_of(const CrashCheckArguments& arguments, const CommonOptions& common,
                                     const CrashSpec& spec) {
  if (arguments.profile == "all" || (arguments.profile.empty() && !common.mutant.empty())) {
    return {ProfileKind::posix, ProfileKind::ext4, ProfileKind::nfs};
  }
  const std::string_view name = arguments.profile.empty() ? to_string(spec.profile) : arguments.profile;
  return {*crash::profile_kind_from(name)};
}

// A trace that is kept in a file: read if it is there. Absent: it has to be recorded.
Result<std::optional<crash::Trace>> kept_trace(const std::string& file) {
  if (file.empty()) return std::optional<crash::Trace>();
  FD_TRY_VOID(may_be_read(file));
  FD_TRY(const std::filesystem::file_type kind, kind_of(file));
  if (kind == std::filesystem::file_type::not_found) return std::optional<crash::Trace>();
  std::ifstream in(file);
  FD_TRY(crash::Trace trace, crash::read_trace(in));
  return std::optional(std::move(trace));
}

Status keep_trace(const std::string& file, const crash::Trace& recorded) {
  std::error_code failed;
  if (file.empty() || std::filesystem::exists(file, failed)) return {};
  std::ofstream out(file);
  crash::write_trace(out, recorded);
  if (!out.flush()) return Error{.code = Code::io_error, .message = fmt::format("cannot write {}", file)};
  return {};
}

struct Done {
  ProfileKind profile = ProfileKind::posix;
  CrashCheckResult result;
};

// What the answer is worth, in words.
std::string proof_of(const CrashCheckResult& result) {
  if (result.violations > 0) return "a violation was found";
  if (result.complete) return "every legal state was checked";
  return fmt::format(
      "NO PROOF: nothing wrong was seen, but only {} of the {} legal states are covered, and any other may be wrong; "
      "give more --time, or a smaller scenario",
      result.covered.to_short_string(), result.legal.to_short_string());
}

nlohmann::ordered_json to_json(const Done& done) {
  const CrashCheckResult& result = done.result;
  nlohmann::ordered_json json = {{"profile", to_string(done.profile)},
                                 {"engine", to_string(result.engine)},
                                 {"traces", result.cases},
                                 {"operations", result.operations}};
  // Numbers that a double cannot hold exactly are texts.
  const auto number = [](const crash::Count& count) -> nlohmann::ordered_json {
    constexpr double exact_max = 9e15;
    if (count.to_double() > exact_max) return count.to_string();
    return static_cast<std::uint64_t>(count.to_double());
  };
  json["legal_states"] = number(result.legal);
  json["covered_states"] = number(result.covered);
  json["checked_states"] = result.checked;
  json["nothing_listed"] = result.fresh;
  json["runs"] = result.runs;
  const double states = static_cast<double>(result.checked);
  json["states_per_second"] = result.seconds > 0 ? static_cast<std::uint64_t>(states / result.seconds) : 0;
  json["torn"] = result.torn;
  json["complete"] = result.complete;
  json["proof"] = proof_of(result);
  json["violations"] = result.violations;
  json["seconds"] = result.seconds;
  if (result.violations > 0) json["first_violation_seconds"] = result.first_violation;
  return json;
}

nlohmann::ordered_json violation_json(const Story& story, double seconds) {
  nlohmann::ordered_json json = {{"message", story.what}, {"seconds", seconds}};
  json["operations"] = nlohmann::ordered_json::array();
  for (const Story::Line& line : story.operations) {
    json["operations"].push_back({{"what", line.operation},
                                  {"state", line.fate},
                                  {"kind", line.kind},
                                  {"path", line.path},
                                  {"second", line.second},
                                  {"rank", line.rank}});
  }
  json["reads"] = story.disk;
  return json;
}

void add_lines(Report& report, const Done& done) {
  const CrashCheckResult& result = done.result;
  const std::string_view verdict = result.violations > 0 ? "FAIL  " : "passed";
  report.lines.push_back(fmt::format(
      "{}  {:<5}  {}: {} legal states, {} covered by {} runs of the {} engine in {:.1f} s; {} found, restored on all "
      "ranks and compared, {} with nothing to find",
      verdict, to_string(done.profile), result.complete ? "complete" : "NOT COMPLETE", result.legal.to_short_string(),
      result.covered.to_short_string(), result.runs, to_string(result.engine), result.seconds, result.checked,
      result.fresh));
  if (!result.complete && result.violations == 0) report.lines.push_back("        " + proof_of(result));
  for (const std::string& note : result.notes) report.lines.push_back("        " + note);
  if (!result.story) return;
  report.lines.push_back(fmt::format("        first violation after {:.2f} s, profile {}", result.first_violation,
                                     to_string(done.profile)));
  for (const std::string& line : result.story->lines()) report.lines.push_back("        " + line);
}

std::string reproduce_of(const CrashCheckArguments& arguments, const CommonOptions& common, const Plan& plan,
                         ProfileKind profile) {
  std::string line =
      fmt::format("firedrill crashcheck {} --profile {} --seed {}", arguments.scenario, to_string(profile), plan.seed);
  if (!arguments.engine.empty()) line += fmt::format(" --engine {}", arguments.engine);
  if (!arguments.trace.empty()) line += fmt::format(" --trace {}", arguments.trace);
  if (!common.mutant.empty()) line += fmt::format(" --mutant {}", common.mutant);
  for (const std::string& setting : common.set) line += fmt::format(" --set '{}'", setting);
  return line;
}

// Fields of the whole: of the one profile, or of all together.
void add_totals(Report& report, const std::vector<Done>& all) {
  if (all.empty()) return;
  Done total = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const CrashCheckResult& more = all[i].result;
    total.result.legal += more.legal;
    total.result.covered += more.covered;
    total.result.checked += more.checked;
    total.result.fresh += more.fresh;
    total.result.runs += more.runs;
    total.result.seconds += more.seconds;
    total.result.violations += more.violations;
    total.result.complete = total.result.complete && more.complete;
  }
  report.more = to_json(total);
  if (all.size() > 1) report.more["profile"] = "all";
  report.more["profiles"] = nlohmann::ordered_json::array();
  for (const Done& done : all) {
    nlohmann::ordered_json& profile = report.more["profiles"].emplace_back(to_json(done));
    if (done.result.story) profile["violation"] = violation_json(*done.result.story, done.result.first_violation);
  }
}

// Whether a node's death took names in the run, which storage that has them on reply (nfs) does not let happen.
bool lost_names(const crash::Trace& trace) {
  const auto is_name = [&trace](const crash::LostItem& item) {
    return trace.operations[item.operation].op != FileOp::write;
  };
  return std::ranges::any_of(trace.operations, [&](const crash::Operation& operation) {
    return operation.kind == crash::OperationKind::node_died && std::ranges::any_of(operation.lost, is_name);
  });
}

Status check_all(const CrashCheckArguments& arguments, const CommonOptions& common, const Scenario& scenario,
                 const Plan& plan, Progress& progress, std::vector<Done>& all) {
  const auto began = std::chrono::steady_clock::now();
  const CrashSpec spec = scenario.crash.value_or(CrashSpec{});
  const auto tell = [&progress](std::string_view what) { progress.doing(std::string(what)); };
  FD_TRY(const auto subject, ExploreSubject::make(plan, golden_directory_of(arguments.scenario)));
  FD_TRY(const auto kept, kept_trace(arguments.trace));
  FD_TRY(const CrashCases found, cases_of(*subject, spec, kept, tell));
  FD_TRY_VOID(keep_trace(arguments.trace, found.recorded));
  CrashCheckOptions options{.jobs = common.jobs,
                            .keep_digests = !arguments.hash_again,
                            .stop_at_first = !common.mutant.empty(),
                            .seconds_max = arguments.seconds.value_or(common.mutant.empty() ? 600.0 : 60.0),
                            .seed = plan.seed,
                            .progress = tell};
  if (!arguments.engine.empty()) {
    options.engine = arguments.engine == "lazy" ? EngineKind::lazy : EngineKind::explicit_states;
  }
  const double recording = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const ProfileKind profile : profiles_of(arguments, common, spec)) {
    options.profile = profile;
    FD_TRY(CrashCheckResult result, crashcheck(*subject, spec, found.cases, options));
    if (found.kills_late > 0) {
      result.notes.push_back(fmt::format("{} kills came too late to hit anything, and make no case", found.kills_late));
    }
    result.first_violation += recording;
    if (profile == ProfileKind::nfs && std::ranges::any_of(found.cases, lost_names, &CrashCase::trace)) {
      result.notes.emplace_back("a node's death took names that nfs would have kept: here they are gone, as recorded");
    }
    all.push_back({.profile = profile, .result = std::move(result)});
    progress.done(fmt::format("explored {}", to_string(profile)));
    if (options.stop_at_first && all.back().result.violations > 0) break;
  }
  return {};
}

// A failed check of our own is no verdict on the code under test; what was explored before it stands.
Status check_or_own_failure(const CrashCheckArguments& arguments, const CommonOptions& common, const Scenario& scenario,
                            const Plan& plan, Progress& progress, std::vector<Done>& all) {
  try {
    return check_all(arguments, common, scenario, plan, progress, all);
  } catch (const CheckFailure& failure) {
    return Error{.code = Code::internal, .message = fmt::format("Firedrill itself failed: {}", failure.what())};
  }
}

VerbResult work(const CrashCheckArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  const auto scenarios = load_scenarios({arguments.scenario}, common, WorldKind::sim, result.mistakes);
  if (!result.mistakes.empty()) return result;
  const Scenario& scenario = scenarios.front();
  if (scenario.expect.kind != Expectation::Kind::pass) {
    result.mistakes.push_back(
        fmt::format("{}: it expects `{}`, and crashcheck judges recoveries, of which all must pass: it takes scenarios "
                    "that expect `pass` (--set expect=pass)",
                    arguments.scenario, to_string(scenario.expect)));
    return result;
  }
  Plan plan = make_plan(scenario, {.seed = common.seed, .mutant = common.mutant, .settings = common.set});
  result.mistakes = refusals_for_crashcheck(plan);
  if (!arguments.trace.empty() && scenario.crash && scenario.crash->kill_everywhere) {
    result.mistakes.push_back(fmt::format(
        "--trace {}: {} has crash.kill_everywhere, which explores one run for each kill, and the file holds one; leave "
        "--trace out",
        arguments.trace, arguments.scenario));
  }
  if (!result.mistakes.empty()) return result;
  prepare_job(plan.mutant, plan.job);
  Report& report = result.report;
  report.seed = plan.seed;
  Progress progress(streams, 3, common.quiet);
  std::vector<Done> all;
  const Status checked = check_or_own_failure(arguments, common, scenario, plan, progress, all);
  add_totals(report, all);
  std::vector<int> codes;
  for (const Done& done : all) {
    add_lines(report, done);
    codes.push_back(done.result.violations > 0 ? 2 : 0);
  }
  if (!checked) {
    report.more["complete"] = false;
    report.lines.push_back(fmt::format("error     {}", describe(checked.error())));
    codes.push_back(checked.failed_with(Code::not_found) || checked.failed_with(Code::invalid_input) ? 1 : 4);
  }
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
  for (const Done& done : all) {
    if (done.result.violations == 0) continue;
    const std::string line = reproduce_of(arguments, common, plan, done.profile);
    report.lines.push_back("reproduce: " + line);
    report.more["reproduce"] = line;
    break;
  }
  return result;
}

}  // namespace

Work add_crashcheck(CLI::App& app) {
  auto arguments = std::make_shared<CrashCheckArguments>();
  app.add_option("scenario", arguments->scenario, "What to record; its crash section says from where on")->required();
  app.add_option("--profile", arguments->profile, "What the storage promises (default: the scenario's; a mutant: all)")
      ->check(CLI::IsMember({"posix", "ext4", "nfs", "all"}));
  app.add_option("--engine", arguments->engine, "Default: explicit where its count says it can finish, else lazy")
      ->check(CLI::IsMember({"explicit", "lazy"}));
  app.add_option("--trace", arguments->trace, "Explores the trace in this file; records it there if there is none");
  app.add_option("--time", arguments->seconds,
                 "Seconds for each profile, after which the rest is sampled (default: 600; with a mutant 60)")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            double seconds = 0;
            const bool number = CLI::detail::lexical_cast(text, seconds);
            if (number && seconds >= 0.001 && seconds <= 1e6) return "";  // no NaN is
            return fmt::format("{} is no time: give 0.001 to 1000000 seconds", text);
          },
          "SECONDS"));
  app.add_flag("--hash-again", arguments->hash_again, "Every byte that is read is hashed again, in each state");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
