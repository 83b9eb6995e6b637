// samples_exactly_once: interrupted or not, the run consumes each sample as often as it must, and where it must.
//
// Judged is the effective history: for each step, the last attempt in which all ranks completed it; what an attempt
// consumed in vain does not count.
// Verified: each such step consumes exactly the samples that the history says it must (golden_sample), each in its
// lane; and, without trust in that list: no sample occurs twice in an epoch (but for the filling of its last batch
// under `last_batch: pad`), and an epoch that was completed left none out (but for the rest under `last_batch: drop`).
// Not verified: the order of samples within a lane of a step; the state's digest depends on it.
#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <tuple>

#include "harness/check/all.h"

namespace firedrill {
namespace {

struct Use {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t sample = 0;
  std::int64_t lane = 0;

  auto operator<=>(const Use&) const = default;
};

std::string in_words(const Use& use) {
  return fmt::format("step {}: sample {} of epoch {} in lane {}", use.step, use.sample, use.epoch, use.lane);
}

// For each step the last attempt in which all ranks completed it; -1: none.
std::vector<std::int32_t> effective_attempts(const Case& run) {
  const std::size_t steps = static_cast<std::size_t>(std::max(run.plan().job.steps, 0)) + 1;
  std::vector<std::int32_t> effective(steps, -1);
  std::vector<std::int64_t> ranks(steps, 0);
  const AttemptSpan* attempt = nullptr;
  for (const std::uint32_t position : run.history().of(EventKind::step_done)) {
    const Event& event = run.event(position);
    const AttemptSpan* now = run.attempt_at(position);
    if (!now || event.attempt != now->number) continue;
    if (now != attempt) std::fill(ranks.begin(), ranks.end(), 0);
    attempt = now;
    if (event.step < 1 || event.step >= static_cast<std::int64_t>(steps)) continue;
    const std::size_t step = static_cast<std::size_t>(event.step);
    if (++ranks[step] == now->world_size) effective[step] = now->number;
  }
  return effective;
}

// Ranks take a step together, so most lists are in the order of steps already, and only the few uses of one step need
// sorting.
void sort_uses(std::vector<Use>& list) {
  if (!std::ranges::is_sorted(list, {}, &Use::step)) {
    std::ranges::sort(list);
    return;
  }
  for (auto begin = list.begin(); begin != list.end();) {
    const auto end = std::find_if(begin, list.end(), [&](const Use& use) { return use.step != begin->step; });
    std::sort(begin, end);
    begin = end;
  }
}

std::vector<Use> uses(const Case& run, EventKind kind, const std::vector<std::int32_t>& effective) {
  const auto positions = run.history().of(kind);
  std::vector<Use> list;
  list.reserve(positions.size());
  for (const std::uint32_t position : positions) {
    const Event& event = run.event(position);
    if (event.step < 1 || event.step >= static_cast<std::int64_t>(effective.size())) continue;
    const std::int32_t attempt = effective[static_cast<std::size_t>(event.step)];
    if (attempt < 0 || (kind == EventKind::sample && event.attempt != attempt)) continue;
    list.push_back({.step = event.step, .epoch = event.a, .sample = event.b, .lane = event.c});
  }
  sort_uses(list);
  return list;
}

std::string compare_with_golden(const std::vector<Use>& consumed, const std::vector<Use>& wanted) {
  const auto [used, due] = std::mismatch(consumed.begin(), consumed.end(), wanted.begin(), wanted.end());
  if (used == consumed.end() && due == wanted.end()) return {};
  if (due == wanted.end() || (used != consumed.end() && *used < *due)) {
    return in_words(*used) + " is consumed, and should not be (or not twice)";
  }
  return in_words(*due) + " is not consumed, and should be";
}

// `consumed` in the order of steps, so the steps of an epoch stand together.
std::string check_epochs(std::vector<Use> consumed, LastBatch last_batch, bool whole_prefix) {
  if (consumed.empty()) return {};
  const std::int64_t last_epoch = std::max_element(consumed.begin(), consumed.end(), [](const Use& x, const Use& y) {
                                    return x.epoch < y.epoch;
                                  })->epoch;
  std::sort(consumed.begin(), consumed.end(), [](const Use& x, const Use& y) {
    return std::tie(x.epoch, x.sample, x.step, x.lane) < std::tie(y.epoch, y.sample, y.step, y.lane);
  });
  std::int64_t samples = 0;  // of the corpus, as far as the epochs show
  for (const Use& use : consumed) samples = std::max(samples, use.sample + 1);
  for (auto begin = consumed.begin(); begin != consumed.end();) {
    const auto end = std::find_if(begin, consumed.end(), [&](const Use& use) { return use.epoch != begin->epoch; });
    std::int64_t last_step = 0;
    for (auto use = begin; use != end; ++use) last_step = std::max(last_step, use->step);
    std::int64_t next = 0;  // the smallest sample not yet seen, as long as none is left out
    for (auto use = begin; use != end; ++use) {
      const bool again = use != begin && std::prev(use)->sample == use->sample;
      const bool filling = last_batch == LastBatch::pad && use->step == last_step;
      if (again && !filling) {
        return fmt::format("{}, which step {} consumed already", in_words(*use), std::prev(use)->step);
      }
      if (use->sample == next) ++next;
    }
    const bool complete = whole_prefix && begin->epoch < last_epoch && last_batch != LastBatch::drop;
    if (complete && next < samples) return fmt::format("epoch {} left out sample {}", begin->epoch, next);
    begin = end;
  }
  return {};
}

}  // namespace

Verdict judge_samples_exactly_once(const Case& run) {
  const std::vector<std::int32_t> effective = effective_attempts(run);
  const std::vector<Use> consumed = uses(run, EventKind::sample, effective);
  const std::int64_t checked = static_cast<std::int64_t>(consumed.size());
  std::string wrong;
  if (!run.history().of(EventKind::golden_sample).empty()) {
    const std::vector<Use> wanted = uses(run, EventKind::golden_sample, effective);
    wrong = compare_with_golden(consumed, wanted);
  }
  if (wrong.empty()) {
    const auto gap = std::find(effective.begin() + 1, effective.end(), -1);
    const bool whole_prefix = std::all_of(gap, effective.end(), [](std::int32_t attempt) { return attempt < 0; });
    wrong = check_epochs(consumed, run.plan().job.data.last_batch, whole_prefix);
  }
  if (!wrong.empty()) return Verdict::fail(checked, wrong);
  return Verdict::pass(checked);
}

}  // namespace firedrill
