#include "harness/preflight/preflight.h"

#include <array>
#include <exception>

#include "engine/os/zygote.h"

namespace firedrill::preflight {
namespace {

constexpr std::chrono::seconds deadline_of_look{10};

// Before anything else, as a mistyped name is worth no minute's wait. A directory that does not answer is left to its
// check.
Status look_at(const Bench& bench, std::string_view option, const std::string& directory, bool may_be_missing) {
  if (directory.empty()) return {};
  const Result<std::vector<RankAnswer>> answers =
      bench.ask({{"probe", "look"}, {"directory", directory}, {"may_be_missing", may_be_missing}}, 1, deadline_of_look);
  if (!answers || !answers->front().failure) return {};
  const ProbeFailure& failure = *answers->front().failure;
  return Error{.code = Code::invalid_input,
               .message = fmt::format("{} {}: {}", option, directory, failure.why),
               .hint = failure.remedy};
}

CheckResult not_begun(const Check& check) {
  return {.name = std::string(check.name),
          .headline = "not begun",
          .findings = {{Standing::unknown, "it was interrupted before this check", "an answer", std::string(check.name),
                        "run it again"}}};
}

CheckResult run_check(const Check& check, Bench& bench) {
  const auto began = std::chrono::steady_clock::now();
  CheckResult result;
  try {
    result = check.run(bench);
  } catch (const std::exception& error) {
    result.findings.push_back({Standing::unknown, fmt::format("the check itself failed: {}", error.what()), "an answer",
                               std::string(check.name), "report it: this is a mistake of Firedrill"});
  }
  result.name = check.name;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (result.headline.empty() && !result.findings.empty()) result.headline = result.findings.front().measured;
  return result;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::quick: return "quick";
    case Level::standard: return "standard";
    case Level::full: return "full";
  }
  return "?";
}

std::span<const Check> checks() {
  static constexpr std::array<Check, 9> all = {{
      {"machine", "cores, limits, clocks, versions and numerics of all ranks", Level::quick, check_machine},
      {"storage", "what the directory promises, its space and speed", Level::quick, check_storage},
      {"memory", "what the job needs against what the ranks have", Level::quick, check_memory},
      {"exchange", "every collective of every group, and how fast groups and links are", Level::quick, check_exchange},
      {"stragglers", "how fast each rank computes, copies and reads", Level::standard, check_stragglers},
      {"restore", "an existing checkpoint: every byte, and a restore at this size", Level::quick, check_restore},
      {"drills", "lose a rank, a node, storage, space, be preempted; each ends equal to the golden", Level::standard,
       check_drills},
      {"phases", "lose a rank in every phase of its work", Level::full, check_phases},
      {"load", "storage, exchange, stragglers and drills again and again", Level::full, check_load},
  }};
  return all;
}

Result<std::vector<CheckResult>> run_checks(const Options& options,
                                            const std::function<void(const CheckResult&)>& ended) {
  FD_TRY(std::unique_ptr<ZygoteLauncher> launcher, ZygoteLauncher::start_zygote());
  Team team(*launcher);
  Bench bench{.options = options, .team = team};
  FD_TRY_VOID(look_at(bench, "--dir", options.directory.string(), true));
  FD_TRY_VOID(look_at(bench, "--restore", options.restore.string(), false));
  std::vector<CheckResult> results;
  for (const Check& check : checks()) {
    if (options.level < check.from) continue;
    bench.tell(check.summary);
    results.push_back(bench.stopped() ? not_begun(check) : run_check(check, bench));
    ended(results.back());
  }
  // Whoever hangs in a mount can be neither killed nor waited for; it goes with this process, or when the mount
  // answers.
  if (team.abandoned()) (void)launcher.release();
  return results;
}

}  // namespace firedrill::preflight
