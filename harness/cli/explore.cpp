// firedrill explore SCENARIO|JOB: many drawn combinations of job options, layout, faults and schedule, each judged by
// every property. Exit: 2 a property failed, 3 liveness, 4 something differed that must be the same, or could not be
// judged.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "harness/cli/golden_place.h"
#include "harness/cli/inputs.h"
#include "harness/cli/progress.h"
#include "harness/cli/stop_on_signal.h"
#include "harness/cli/verb.h"
#include "harness/explore/swarm/trials.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shown_max = 8;  // of a list, in words; JSON has all of it

struct ExploreArguments {
  std::string given;
  std::uint64_t trials = 1000;
  std::uint64_t first = 0;
  std::string time;
  std::string shard = "0/1";
  std::string world;  // empty: the scenario's
  std::string corpus;
  int ranks = 4;
};

// The program's own bytes: a golden that another build computed proves nothing about this one.
std::string build_key() {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  DigestStream digest;
  std::vector<char> part(1 << 20);
  while (program.read(part.data(), std::ssize(part)) || program.gcount() > 0) {
    digest.add(std::as_bytes(std::span(part.data(), static_cast<std::size_t>(program.gcount()))));
  }
  return digest.finish().hex().substr(0, 16);
}

Plan base_of_job(const ExploreArguments& arguments, const CommonOptions& common, std::vector<std::string>& mistakes) {
  Plan plan;
  Loaded<Job> job = load_job(arguments.given, {.set = common.set});
  if (!job) {
    mistakes = job.mistakes;
    return plan;
  }
  plan.job = *std::move(job);
  plan.scenario = plan.job.name;
  plan.scenario_path = arguments.given;
  plan.run_id = run_id_of(plan.job);
  plan.layout.dp = std::gcd(plan.job.lanes.dp, arguments.ranks);
  plan.seed = common.seed.value_or(1);
  plan.mutant = common.mutant;
  plan.settings = common.set;
  return plan;
}

// Sets what the options of the trials take from the scenario.
Plan base_of_scenario(const ExploreArguments& arguments, const CommonOptions& common, TrialsOptions& options,
                      std::vector<std::string>& mistakes) {
  const auto scenarios = load_scenarios({arguments.given}, common, std::nullopt, mistakes);
  if (!mistakes.empty()) return {};
  options.swarm.weights = load_weights(arguments.given, {.set = common.set});
  options.swarm.ranks_max = scenarios.front().layout.world_size();
  return make_plan(scenarios.front(), {.seed = common.seed, .mutant = common.mutant, .settings = common.set});
}

TrialsOptions options_of(const ExploreArguments& arguments, const CommonOptions& common,
                         std::vector<std::string>& mistakes) {
  TrialsOptions options{.trials = arguments.trials, .first = arguments.first, .jobs = common.jobs};
  options.swarm.ranks_max = arguments.ranks;
  if (!arguments.time.empty()) {
    if (const auto time = parse_duration(arguments.time)) {
      options.seconds = std::chrono::duration<double>(*time).count();
    }
    if (options.seconds.value_or(0) <= 0) {
      mistakes.push_back(fmt::format("--time {}: give a time such as 30s or 8h", arguments.time));
    }
  }
  const std::vector<std::string> parts = split(arguments.shard, '/');
  const auto shard = parts.size() == 2 ? parse_whole(parts[0]) : std::nullopt;
  const auto shards = parts.size() == 2 ? parse_whole(parts[1]) : std::nullopt;
  if (shard && shards && *shard < *shards) {
    options.shard = *shard;
    options.shards = *shards;
  } else {
    mistakes.push_back(fmt::format("--shard {}: give i/n with i from 0 to n - 1, such as 0/4", arguments.shard));
  }
  if (arguments.trials - 1 > UINT64_MAX - arguments.first) {
    mistakes.push_back(fmt::format("--first {} with --trials {}: their numbers would go beyond {}; give a smaller one",
                                   arguments.first, arguments.trials, UINT64_MAX));
  } else if (mistakes.empty() && trials_of_shard(options) == 0) {
    mistakes.push_back(fmt::format("--shard {}: none of the {} trials from {} on is in it; give more --trials",
                                   arguments.shard, arguments.trials, arguments.first));
  }
  if (!common.out.empty()) options.failures = common.out / "failures";
  options.session.golden_directory = golden_directory_of(arguments.given);
  options.session.memo_bytes = std::size_t{256} << 20;  // of many variants and layouts
  options.stop = &StopOnSignal::came();
  return options;
}

std::vector<std::string> never_reached(const TrialsResult& result) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < situations().size(); ++i) {
    if (!result.coverage.came_about()[i]) list.emplace_back(situations()[i].name);
  }
  for (const Reach& reach : result.reachable) {
    if (!result.coverage.reached().contains(reach)) list.push_back(to_string(reach));
  }
  return list;
}

std::size_t reached_of_reachable(const TrialsResult& result) {
  return static_cast<std::size_t>(std::ranges::count_if(
      result.reachable, [&](const Reach& reach) { return result.coverage.reached().contains(reach); }));
}

// Of each kind and phase how many of its places were reached: one for the phase itself, one for each file operation.
nlohmann::ordered_json coverage_by_phase(const TrialsResult& result) {
  std::map<std::pair<FaultKind, Phase>, std::pair<int, int>> cells;
  for (const Reach& reach : result.reachable) {
    auto& [reached, all] = cells[{reach.kind, reach.phase}];
    ++all;
    if (result.coverage.reached().contains(reach)) ++reached;
  }
  auto list = nlohmann::ordered_json::array();
  for (const auto& [place, counts] : cells) {
    list.push_back({{"kind", to_string(place.first)},
                    {"phase", to_string(place.second)},
                    {"reached", counts.first},
                    {"of", counts.second}});
  }
  return list;
}

// Without a folder it is the trial of this command again, unless it came from the corpus, which has grown since.
std::string reproduce_of(const TrialFailure& failure, const Plan& base, const ExploreArguments& arguments) {
  if (!failure.directory.empty()) return fmt::format("firedrill replay {}", failure.directory.string());
  if (failure.from_corpus)
    return "only from its plan, which came from the corpus: explore with --out DIR, which keeps it";
  std::string line =
      fmt::format("firedrill explore {} --seed {} --first {} --trials 1", arguments.given, base.seed, failure.trial);
  if (!arguments.world.empty()) line += fmt::format(" --world {}", arguments.world);
  if (arguments.ranks != ExploreArguments().ranks) line += fmt::format(" --ranks {}", arguments.ranks);
  if (!base.mutant.empty()) line += fmt::format(" --mutant {}", base.mutant);
  for (const std::string& setting : base.settings) line += fmt::format(" --set '{}'", setting);
  return line;
}

int code_of(const TrialFailure& failure) {
  const bool judged = failure.trouble == Trouble::failed || failure.trouble == Trouble::wrong_result;
  return judged ? exit_code_of(failure.verdict) : 4;
}

void write_counts(Report& report, const TrialsResult& result) {
  auto& more = report.more;
  more["trials"] = result.trials;
  more["trials_per_second"] = result.rate();
  more["distinct_histories"] = result.coverage.distinct_histories();
  more["doubled"] = result.doubled;
  more["without_memo"] = result.without_memo;
  more["rechecked_hits"] = result.rechecked_hits;
  more["beyond_budget"] = {{"plans", result.beyond_budget}, {"gave_up", result.gave_up}};
  more["from_corpus"] = result.from_corpus;
  more["corpus_plans"] = result.corpus_plans;
  more["variants"] = result.variants;
  more["faults"] = {{"planned", result.planned}, {"fired", result.fired}};
  more["stopped"] = result.stopped;
  const std::size_t happened = result.coverage.came_about().count();
  more["coverage"] = {{"places", reached_of_reachable(result)},
                      {"places_of", result.reachable.size()},
                      {"situations", happened},
                      {"situations_of", situations().size()}};
  more["coverage"]["by_phase"] = coverage_by_phase(result);
  more["coverage"]["named"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < situations().size(); ++i) {
    more["coverage"]["named"].push_back(
        {{"situation", situations()[i].name}, {"came_about", bool{result.coverage.came_about()[i]}}});
  }
  more["never_reached"] = never_reached(result);
  report.lines.push_back(fmt::format("{} trials in {:.1f} s: {:.0f} a second; {} distinct histories", result.trials,
                                     result.seconds, result.rate(), result.coverage.distinct_histories()));
  report.lines.push_back(
      fmt::format("faults    {} of {} planned fired; {} plans beyond their budget, of which {} gave up", result.fired,
                  result.planned, result.beyond_budget, result.gave_up));
  report.lines.push_back(fmt::format("checked   {} trials run twice, {} once more without the memo, {} memo hits again",
                                     result.doubled, result.without_memo, result.rechecked_hits));
  report.lines.push_back(
      fmt::format("coverage  {} of {} places (kind, phase, operation), {} of {} situations; {} plans in the corpus, {} "
                  "trials from it",
                  reached_of_reachable(result), result.reachable.size(), happened, situations().size(),
                  result.corpus_plans, result.from_corpus));
}

void write_result(Report& report, const TrialsResult& result, const Plan& base, const ExploreArguments& arguments) {
  report.seed = base.seed;
  report.environment.numerics_key = result.numerics_key;
  write_counts(report, result);
  std::vector<std::string> never = never_reached(result);
  if (!never.empty()) {
    const std::size_t all = never.size();
    never.resize(std::min(all, shown_max));
    report.lines.push_back(fmt::format("never     {}{}", join(never, ", "),
                                       all > shown_max ? fmt::format(", and {} more", all - shown_max) : ""));
  }
  if (result.stopped) report.lines.emplace_back("stopped before all trials were run");
  report.more["failures"] = nlohmann::ordered_json::array();
  report.more["failed"] = result.failures;
  std::vector<int> codes;
  std::vector<std::string> again;
  for (const TrialFailure& failure : result.kept) {
    codes.push_back(code_of(failure));
    const std::string reproduce = reproduce_of(failure, base, arguments);
    report.more["failures"].push_back({{"trial", failure.trial},
                                       {"trouble", to_string(failure.trouble)},
                                       {"verdict", to_string(failure.verdict)},
                                       {"property", failure.property},
                                       {"evidence", failure.evidence},
                                       {"reproduce", reproduce}});
    const std::string what = failure.trouble == Trouble::failed ? std::string(to_string(failure.verdict))
                                                                : std::string(to_string(failure.trouble));
    report.lines.push_back(
        fmt::format("FAILED    trial {}: {}: {} {}", failure.trial, what, failure.property, failure.evidence));
    again.push_back("reproduce: " + reproduce);
    if (failure.run) report.runs.push_back(*failure.run);
  }
  report.lines.push_back(fmt::format("{} failures", result.failures));
  report.lines.insert(report.lines.end(), again.begin(), again.end());
  if (result.trials == 0) {
    codes.push_back(4);
    report.lines.emplace_back("no trial was run, so nothing is known");
  }
  report.exit_code = combined_exit_code(codes);
  report.verdict = verdict_of_exit_code(report.exit_code);
}

// What is known so far, under the final report's name: a reader sees the one or the other whole.
void write_partly(const TrialsResult& result, const Plan& base, const ExploreArguments& arguments,
                  const fs::path& directory) {
  Report report{.verb = "explore"};
  write_result(report, result, base, arguments);
  report.more["stopped"] = true;
  report.duration = result.seconds;
  const fs::path beside = directory / "report.json.part";
  std::ofstream(beside) << to_json(report);
  std::error_code failed;
  fs::rename(beside, directory / "report.json", failed);  // the final report says if nothing can be written here
}

Result<TrialsResult> explore(const Plan& base, TrialsOptions& options, const ExploreArguments& arguments,
                             const CommonOptions& common, Streams streams) {
  std::optional<PlanCorpus> corpus;
  fs::path place = arguments.corpus;
  if (place.empty() && !common.out.empty()) place = common.out / "corpus";
  if (!place.empty()) {
    FD_TRY(PlanCorpus opened, PlanCorpus::open(place));
    corpus.emplace(std::move(opened));
    options.session.golden_cache = place / "goldens" / build_key();
    std::error_code failed;
    fs::create_directories(options.session.golden_cache, failed);  // writing says what is wrong
  }
  const StopOnSignal stop;  // the exploration ends after the trials under way
  Progress progress(streams, static_cast<std::size_t>(arguments.trials), common.quiet);
  const auto tell = [&](const TrialsResult& so_far) {
    progress.doing(
        fmt::format("{} trials, {:.0f} a second, {} failures", so_far.trials, so_far.rate(), so_far.failures));
    if (!common.out.empty()) write_partly(so_far, base, arguments, common.out);
  };
  return run_trials(base, options, corpus ? &*corpus : nullptr, tell);
}

// Real processes wait in real time: a rank that hangs is given up after a second, where a job gives it a minute.
void hasten(Cluster& cluster) {
  using std::chrono::milliseconds;
  cluster.deadline = std::min<std::chrono::nanoseconds>(cluster.deadline, milliseconds(1000));
  cluster.heartbeat = std::min<std::chrono::nanoseconds>(cluster.heartbeat, milliseconds(250));
  cluster.grace = std::min<std::chrono::nanoseconds>(cluster.grace, milliseconds(2000));
}

VerbResult work(const ExploreArguments& arguments, const CommonOptions& common, Streams streams) {
  VerbResult result;
  TrialsOptions options = options_of(arguments, common, result.mistakes);
  if (!result.mistakes.empty()) return result;
  Plan base = is_scenario_file(arguments.given) ? base_of_scenario(arguments, common, options, result.mistakes)
                                                : base_of_job(arguments, common, result.mistakes);
  if (!result.mistakes.empty()) return result;
  if (!arguments.world.empty()) base.world = *world_from(arguments.world);
  if (base.world == WorldKind::process) hasten(base.job.cluster);
  prepare_job(base.mutant, base.job);
  Result<TrialsResult> explored = explore(base, options, arguments, common, streams);
  if (explored) {
    write_result(result.report, *explored, base, arguments);
  } else {
    result.report.lines.push_back(fmt::format("error     {}", describe(explored.error())));
    result.report.exit_code = 4;
    result.report.verdict = RunVerdict::unknown;
  }
  return result;
}

}  // namespace

Work add_explore(CLI::App& app) {
  auto arguments = std::make_shared<ExploreArguments>();
  app.add_option("given", arguments->given, "Scenario or job file; a scenario's faults are replaced by drawn ones")
      ->required();
  app.add_option("--trials", arguments->trials, "How many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--first", arguments->first, "The number of the first one")->capture_default_str();
  app.add_option("--time", arguments->time, "Begin no further trial after this time, such as 10min");
  app.add_option("--shard", arguments->shard, "Only the trials whose number leaves i when divided by n: i/n")
      ->capture_default_str();
  app.add_option("--world", arguments->world, "Run in this world, whatever the scenario says")
      ->check(CLI::IsMember({"sim", "process"}));
  app.add_option("--ranks", arguments->ranks, "The most ranks of a layout, for a job; a scenario's own layout says it")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--corpus", arguments->corpus,
                 "Plans that reached something new, to go on from and to add to; without it in --out");
  return [arguments](const CommonOptions& common, Streams streams) { return work(*arguments, common, streams); };
}

}  // namespace firedrill
