#include "harness/cli/mutants_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace firedrill {
namespace {

// The middle one, of an even number the lower of the two. `values` are not empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

int add_control(Report& report, const HuntOutcome& control) {
  const Hunt& hunt = control.hunt;
  report.more["control"] = {{"trials", hunt.trials}, {"verdict", to_string(hunt.verdict)}};
  if (!hunt.caught) {
    report.lines.push_back(fmt::format("passed    the right engine, as control: {} trials", hunt.trials));
    return 0;
  }
  const bool unknown = hunt.verdict == RunVerdict::unknown;
  report.lines.push_back(
      fmt::format("{}      the right engine {} {} in trial {} (seed {}), so no catch means anything: {}",
                  unknown ? "UNKNOWN" : "FAIL", unknown ? "cannot be judged on" : "fails",
                  hunt.property.empty() ? "a check of its own" : hunt.property, hunt.trials, hunt.seed, hunt.evidence));
  return unknown ? 4 : 2;
}

int add_mutant(Report& report, const HuntOutcome& outcome, const std::string& reproduce) {
  const Hunt& hunt = outcome.hunt;
  const std::string_view expected = outcome.mutant->caught_by;
  if (!hunt.caught) {
    report.more["survived"].push_back(outcome.name());
    report.lines.push_back(
        fmt::format("SURVIVED  {}: {} trials, expected of {}", outcome.name(), hunt.trials, expected));
    return 2;
  }
  nlohmann::ordered_json killed = {{"mutant", outcome.name()},  {"property", hunt.property}, {"expected", expected},
                                   {"trials", hunt.trials},     {"seconds", hunt.seconds},   {"seed", hunt.plan.seed},
                                   {"evidence", hunt.evidence}, {"reproduce", reproduce}};
  std::string shrunk;
  if (outcome.shrunk) {
    killed["shrunk_faults"] = outcome.shrunk->plan.faults.size();
    killed["shrink_seconds"] = outcome.shrunk->seconds;
    killed["shrunk"] = size_in_words(outcome.shrunk->plan);
    shrunk = fmt::format("; shrunk in {:.2f} s to {}", outcome.shrunk->seconds, size_in_words(outcome.shrunk->plan));
  }
  report.more["killed"].push_back(std::move(killed));
  report.lines.push_back(fmt::format("killed    {:<32} by {} in trial {}, {:.2f} s{}: {}", outcome.name(),
                                     hunt.property, hunt.trials, hunt.seconds, shrunk, hunt.evidence));
  return 0;
}

int add_canary(Report& report, const Canary& canary) {
  report.more["canaries"].push_back({{"canary", canary.name},
                                     {"expected", canary.expected},
                                     {"reported", canary.reported},
                                     {"evidence", canary.evidence}});
  if (canary.alive()) {
    report.lines.push_back(fmt::format("canary    {:<32} reported as {}", canary.name, canary.reported));
    return 0;
  }
  report.lines.push_back(fmt::format("CANARY    {}: reported as {}, and is {}: no verdict here means anything",
                                     canary.name, canary.reported, canary.expected));
  return 4;
}

void add_summary(Report& report, const std::vector<HuntOutcome>& outcomes) {
  std::vector<double> trials;
  std::vector<double> seconds;
  std::vector<double> faults;
  std::vector<double> shrinking;
  std::size_t hunted = 0;
  for (const HuntOutcome& outcome : outcomes) {
    if (outcome.mutant == nullptr) continue;
    ++hunted;
    if (!outcome.hunt.caught || !outcome.error.empty()) continue;
    trials.push_back(static_cast<double>(outcome.hunt.trials));
    seconds.push_back(outcome.hunt.seconds);
    if (!outcome.shrunk) continue;
    faults.push_back(static_cast<double>(outcome.shrunk->plan.faults.size()));
    shrinking.push_back(outcome.shrunk->seconds);
  }
  std::string line = fmt::format("{} of {} mutants killed", trials.size(), hunted);
  if (!trials.empty()) {
    report.more["median"] = {{"trials", median(trials)}, {"seconds", median(seconds)}};
    line += fmt::format("; trials: median {:.0f}, at most {:.0f}", median(trials), std::ranges::max(trials));
  }
  if (!faults.empty()) {
    report.more["median"]["shrunk_faults"] = median(faults);
    report.more["median"]["shrink_seconds"] = median(shrinking);
    line += fmt::format("; shrunk: median {:.0f} faults in {:.2f} s, at most {:.0f}", median(faults), median(shrinking),
                        std::ranges::max(faults));
  }
  report.lines.push_back(line);
}

}  // namespace firedrill
