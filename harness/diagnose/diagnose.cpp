#include "harness/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/diagnose/causes.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

// Of the time between a stage's first forward and last backward: more micro-batches would fill it.
constexpr double idle_share_to_tell = 0.3;
// A backward that recomputes its segments takes about three forwards.
constexpr double backward_of_forward = 4;

// Fields of job and layout in which two runs differ: "layout.bucket: 0 -> 512".
std::vector<Change> differences(const Plan& before, const Plan& now) {
  const Json a = Json::parse(to_json(before)).flatten();
  const Json b = Json::parse(to_json(now)).flatten();
  std::set<std::string> keys;
  for (const auto& [key, value] : a.items()) keys.insert(key);
  for (const auto& [key, value] : b.items()) keys.insert(key);
  std::vector<Change> changes;
  for (const std::string& key : keys) {
    const bool counted = key.starts_with("/job/") || key.starts_with("/layout/") || key == "/world";
    const Json old_value = a.contains(key) ? a[key] : Json();
    const Json new_value = b.contains(key) ? b[key] : Json();
    if (!counted || old_value == new_value) continue;
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    const auto text = [](const Json& value) { return value.is_null() ? std::string("default") : value.dump(); };
    changes.push_back({.variable = std::move(name), .now = text(new_value), .next = text(old_value)});
  }
  return changes;
}

// What the layout leaves idle though nothing is slow.
void suggest(Diagnosis& diagnosis) {
  const Figures& figures = diagnosis.figures;
  const Plan& plan = figures.plan;
  if (plan.layout.pp > 1 && figures.idle_in_pipeline >= idle_share_to_tell) {
    const int micro_batches = plan.job.batch.accumulation * plan.job.lanes.dp / plan.layout.dp;
    diagnosis.next = Change{"batch.accumulation", std::to_string(plan.job.batch.accumulation),
                            std::to_string(2 * plan.job.batch.accumulation)};
    diagnosis.next_why = fmt::format(
        "each stage is idle for at least {:.0f} % of a step: {} micro-batches for {} stages (more of them "
        "change the job's bits; layout.virtual_stages does not)",
        100 * figures.idle_in_pipeline, micro_batches, plan.layout.pp);
    return;
  }
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  for (const RankFigures& rank : figures.ranks) {
    forward += rank.of(StepPart::forward).own;
    backward += rank.of(StepPart::backward).own;
  }
  if (plan.layout.recompute != Recompute::layer || ratio_of(backward, forward) < backward_of_forward) return;
  diagnosis.next = Change{"layout.recompute", "layer", "segment"};
  diagnosis.next_why = fmt::format(
      "backward takes {:.1f} times as long as forward, since attention runs once more in it; `firedrill fit` "
      "says what memory that costs",
      ratio_of(backward, forward));
}

void conclude(Diagnosis& diagnosis) {
  std::stable_sort(diagnosis.causes.begin(), diagnosis.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.cost > b.cost; });
  if (diagnosis.causes.empty()) {
    suggest(diagnosis);
    return;
  }
  diagnosis.next = diagnosis.causes.front().change;
  diagnosis.next_why = diagnosis.causes.front().evidence;
}

void add(std::vector<Cause> found, std::vector<Cause>& causes) {
  causes.insert(causes.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

Diagnosis with_causes(Figures figures) {
  Diagnosis diagnosis{.figures = std::move(figures), .causes = {}, .next = {}, .next_why = {}, .told = {}};
  const auto look = {slow_ranks, unbalanced_stages, slow_links, small_buckets, spread_groups};
  for (const auto& at : look) add(at(diagnosis.figures), diagnosis.causes);
  return diagnosis;
}

}  // namespace

std::string_view to_string(CauseKind kind) {
  constexpr std::array<std::string_view, 8> names = {"slow rank",     "slow input",       "slow link",    "slow disk",
                                                     "small buckets", "unbalanced stage", "spread group", "grown"};
  return names[static_cast<std::size_t>(kind)];
}

Status comparable(const Plan& now, const Plan& other) {
  std::string differ;
  for (const Change& change : differences(other, now)) {
    if (change.variable != "world" && !change.variable.starts_with("job.model.")) continue;
    differ += fmt::format("{}{} is {} in the one and {} in the other", differ.empty() ? "" : "; ", change.variable,
                          change.now, change.next);
  }
  if (differ.empty()) return {};
  return Error{.code = Code::invalid_input,
               .message = "--against: what the two runs took cannot be compared: " + differ,
               .hint = "give a run of the same model in the same world"};
}

Diagnosis diagnose(Figures figures) {
  Diagnosis diagnosis = with_causes(std::move(figures));
  conclude(diagnosis);
  return diagnosis;
}

Diagnosis diagnose(Figures figures, const Figures& against) {
  Diagnosis diagnosis = with_causes(std::move(figures));
  const std::vector<Change> changes = differences(against.plan, diagnosis.figures.plan);
  for (const Change& change : changes) {
    diagnosis.told.push_back(fmt::format("{}: {} -> {}", change.variable, change.next, change.now));
  }
  std::vector<Cause> grown = grown_parts(diagnosis.figures, against);
  for (Cause& cause : grown) {
    // With one difference between the two runs there is nothing else to try.
    if (changes.size() == 1) cause.change = changes.front();
  }
  add(std::move(grown), diagnosis.causes);
  conclude(diagnosis);
  return diagnosis;
}

}  // namespace firedrill
