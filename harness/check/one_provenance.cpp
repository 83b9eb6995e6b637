// one_provenance: all parts of a checkpoint are of one (run, job, step, attempt, try), and no such name is used twice.
//
// Verified: what a probe finds has one provenance in manifest and shards, by the audit; the id of each committed and
// acknowledged save is its step, attempt and try; each shard lies under the id of the save that wrote it, and is
// written once; no id is committed twice, and none without shards of exactly that step, attempt and try. Not verified:
// that the values are those of the step; resume_equals_golden and partial_never_discoverable do that.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>

#include "harness/check/all.h"
#include "harness/check/probe_counts.h"

namespace firedrill {
namespace {

CheckpointId id_of(const Event& event) { return {.step = event.step, .attempt = event.attempt, .trial = event.a}; }

// The id's text without an allocation.
class IdText {
 public:
  explicit IdText(const CheckpointId& id) {
    for (const std::int64_t field : {id.step, id.attempt, id.trial}) {
      if (end_ != text_) *end_++ = '-';
      end_ = std::to_chars(end_, std::end(text_), field).ptr;
    }
  }
  std::string_view view() const { return {text_, static_cast<std::size_t>(end_ - text_)}; }

 private:
  char text_[64];
  char* end_ = text_;
};

bool lies_under(std::string_view path, std::string_view directory) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == directory) return end < path.size();
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

std::string check_saves(const Case& run, EventKind kind, std::int64_t& checked) {
  for (const std::uint32_t position : run.history().of(kind)) {
    const Event& event = run.event(position);
    ++checked;
    const std::string_view id = run.history().text(event.name);
    if (id == IdText(id_of(event)).view()) continue;
    return fmt::format("{}: {} as {} by try {}", place_of(event), to_string(kind), id, event.a);
  }
  return {};
}

std::string check_shards(const Case& run, std::int64_t& checked) {
  const auto written = run.history().of(EventKind::shard_written);
  std::vector<std::pair<NameId, std::uint32_t>> names;
  names.reserve(written.size());
  for (const std::uint32_t position : written) {
    const Event& event = run.event(position);
    ++checked;
    names.emplace_back(event.name, position);
    const std::string_view path = run.history().text(event.name);
    if (lies_under(path, IdText(id_of(event)).view())) continue;
    return fmt::format("{}: try {} writes shard {}, which does not lie under {}", place_of(event), event.a, path,
                       to_string(id_of(event)));
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 1; i < names.size(); ++i) {
    if (names[i].first != names[i - 1].first) continue;
    return fmt::format("shard {} is written twice: {}; {}", run.history().text(names[i].first),
                       place_of(run.event(names[i - 1].second)), place_of(run.event(names[i].second)));
  }
  return {};
}

std::string check_commits(const Case& run) {
  std::vector<CheckpointId> shards;
  for (const std::uint32_t position : run.history().of(EventKind::shard_written)) {
    shards.push_back(id_of(run.event(position)));
  }
  std::sort(shards.begin(), shards.end());
  std::vector<CheckpointId> committed;
  for (const std::uint32_t position : run.history().of(EventKind::committed)) {
    const CheckpointId id = id_of(run.event(position));
    if (!std::binary_search(shards.begin(), shards.end(), id)) {
      return fmt::format("{} is committed, and no shard was written for that step, attempt and try", to_string(id));
    }
    committed.push_back(id);
  }
  std::sort(committed.begin(), committed.end());
  const auto twice = std::adjacent_find(committed.begin(), committed.end());
  if (twice != committed.end()) return fmt::format("{} is committed twice", to_string(*twice));
  return {};
}

std::string check_probes(const Case& run, std::int64_t& checked) {
  ProbeCounts counts;
  const auto wrong = first_wrong_probe(run, {}, counts, [](std::uint32_t, const ProbeResult& probe) {
    if (probe.outcome != ProbeOutcome::found) return ProbeAnswer::not_judged;
    return probe.provenance_coherent ? ProbeAnswer::right : ProbeAnswer::wrong;
  });
  checked += counts.total();
  if (!wrong) return {};
  const Event& event = run.event(*wrong);
  const ProbeResult& probe = run.history().probe(event);
  return fmt::format("{}, view {}: the parts of checkpoint {} are not of one run, job, step, attempt and try{}{}",
                     place_of(event), to_string(probe.view), to_string(probe.found), probe.reason.empty() ? "" : ": ",
                     probe.reason);
}

}  // namespace

Verdict judge_one_provenance(const Case& run) {
  std::int64_t checked = 0;
  std::string wrong = check_saves(run, EventKind::committed, checked);
  if (wrong.empty()) wrong = check_saves(run, EventKind::acknowledged, checked);
  if (wrong.empty()) wrong = check_shards(run, checked);
  if (wrong.empty()) wrong = check_commits(run);
  if (wrong.empty()) wrong = check_probes(run, checked);
  if (!wrong.empty()) return Verdict::fail(checked, wrong);
  return Verdict::pass(checked);
}

}  // namespace firedrill
