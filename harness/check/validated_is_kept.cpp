// validated_is_kept: what was once validated stays, until enough newer ones have been.
//
// Verified: from a checkpoint's validation on (or from when a later attempt finds its mark, if who made it died before
// it said so), every later probe, in every view the world offers, sees at least min(checkpoint.keep_validated, number
// validated so far) validated checkpoints that the audit finds intact, so never none; and a validated checkpoint is
// retired only behind at least keep_validated newer ones. What may go once may go for good: a later rejection does not
// bring it back. One that a newer one of its own step stands in for may go, too, and is not owed any more: of a try
// that was marked and whose success then could not be told, the next try saves the same step again. Excused: of the
// newest keep_validated ones those that a fault damaged at rest; what a power loss would leave once a sync has lied.
// Not verified: that nothing is deleted while a rank reads it (a deletion under a reader shows as an error of that
// rank).
#include <fmt/format.h>

#include <algorithm>

#include "harness/check/all.h"
#include "harness/check/probe_counts.h"

namespace firedrill {
namespace {

// The validated checkpoints, without rejected and retired ones, as one walks forward; and those of them that must be
// there, because not yet `keep` newer ones have been.
class Validated {
 public:
  Validated(const Case& run, std::int64_t keep)
      : run_(run),
        keep_(keep),
        marks_(run.history().of(EventKind::validated)),
        found_(run.history().of(EventKind::found)),
        rejected_(run.history().of(EventKind::rejected)),
        retired_(run.history().of(EventKind::retired)) {}

  // Ascending.
  const std::vector<CheckpointId>& before(std::size_t position) {
    for (; mark_ < marks_.size() && marks_[mark_] < position; ++mark_) add(run_.event(marks_[mark_]));
    for (; find_ < found_.size() && found_[find_] < position; ++find_) {
      const Event& found = run_.event(found_[find_]);
      if (run_.history().text(found.detail) == "validated") add(found);
    }
    for (; reject_ < rejected_.size() && rejected_[reject_] < position; ++reject_)
      remove(run_.event(rejected_[reject_]));
    for (; retire_ < retired_.size() && retired_[retire_] < position; ++retire_) remove(run_.event(retired_[retire_]));
    return ids_;
  }
  const std::vector<CheckpointId>& owed_before(std::size_t position) {
    before(position);
    return owed_;
  }

 private:
  void remove(const Event& event) {
    const CheckpointId id{.step = event.a, .attempt = event.b, .trial = event.c};
    std::erase(ids_, id);
    std::erase(owed_, id);
  }
  void add(const Event& event) {
    // A later attempt may mark what an earlier one committed, so the id is in the name, not in the event's attempt.
    const auto id = checkpoint_id_from(run_.history().text(event.name));
    if (!id) return;
    insert(ids_, *id);
    insert(owed_, *id);
    if (std::ssize(owed_) > keep_) owed_.erase(owed_.begin());
    std::erase_if(owed_, [&id](const CheckpointId& older) { return older.step == id->step && older < *id; });
  }
  static void insert(std::vector<CheckpointId>& ids, const CheckpointId& id) {
    const auto place = std::lower_bound(ids.begin(), ids.end(), id);
    if (place == ids.end() || *place != id) ids.insert(place, id);
  }

  const Case& run_;
  std::int64_t keep_;
  std::span<const std::uint32_t> marks_;
  std::span<const std::uint32_t> found_;
  std::span<const std::uint32_t> rejected_;
  std::span<const std::uint32_t> retired_;
  std::size_t mark_ = 0;
  std::size_t find_ = 0;
  std::size_t reject_ = 0;
  std::size_t retire_ = 0;
  std::vector<CheckpointId> ids_;
  std::vector<CheckpointId> owed_;
};

// The validated checkpoints newer than `id`, ascending: by their events, and by the last probe, since a rank may die
// between the mark and its event.
std::vector<CheckpointId> newer_than(const Case& run, const CheckpointId& id, std::vector<CheckpointId> known,
                                     std::size_t position) {
  const auto probes = run.history().of(EventKind::probe);
  const auto rejected = [&](const CheckpointId& seen) {
    const auto rejections = run.history().of(EventKind::rejected);
    return std::any_of(rejections.begin(), rejections.end(), [&](std::uint32_t rejection) {
      const Event& event = run.event(rejection);
      return rejection < position && seen == CheckpointId{.step = event.a, .attempt = event.b, .trial = event.c};
    });
  };
  const auto after = std::lower_bound(probes.begin(), probes.end(), position);
  if (after != probes.begin()) {
    for (const SeenCheckpoint& seen : run.history().probe(run.event(*std::prev(after))).seen) {
      if (seen.validated && seen.intact && !rejected(seen.id)) known.push_back(seen.id);
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return {std::upper_bound(known.begin(), known.end(), id), known.end()};
}

std::int64_t due_at(const Case& run, std::size_t position, const std::vector<CheckpointId>& owed) {
  if (!run.storage_damaged_before(position)) return std::ssize(owed);
  return std::count_if(owed.begin(), owed.end(),
                       [&](const CheckpointId& id) { return !run.lost_before(position, id); });
}

std::string list(const std::vector<SeenCheckpoint>& seen) {
  if (seen.empty()) return "nothing";
  std::string text;
  for (const SeenCheckpoint& one : seen) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", to_string(one.id),
                        one.validated ? "validated" : "not validated", one.intact ? "" : ", not whole");
  }
  return text;
}

std::string check_retired(const Case& run, std::int64_t keep, std::int64_t& checked) {
  Validated validated(run, keep);
  for (const std::uint32_t position : run.history().of(EventKind::retired)) {
    const Event& event = run.event(position);
    const CheckpointId id{.step = event.a, .attempt = event.b, .trial = event.c};
    const std::vector<CheckpointId>& ids = validated.before(position);
    const auto place = std::lower_bound(ids.begin(), ids.end(), id);
    if (place == ids.end() || *place != id) continue;
    ++checked;
    const std::vector<CheckpointId> newer = newer_than(run, id, ids, position);
    if (std::ssize(newer) >= keep || (!newer.empty() && newer.front().step == id.step)) continue;
    return fmt::format("{}: {} is retired with {} newer validated checkpoints, {} are to be kept", place_of(event),
                       to_string(id), newer.size(), keep);
  }
  return {};
}

}  // namespace

Verdict judge_validated_is_kept(const Case& run) {
  const std::int64_t keep = std::max(run.plan().job.checkpoint.keep_validated, 1);
  ProbeCounts counts;
  Validated validated(run, keep);
  std::int64_t due = 0;
  std::int64_t there = 0;
  const auto too_few = [&](std::uint32_t position, const ProbeResult& probe) {
    due = due_at(run, position, validated.owed_before(position));
    if (due == 0) return ProbeAnswer::not_judged;
    if (probe.view == ProbeView::power_fails && run.sync_lied_before(position)) return ProbeAnswer::not_judged;
    there = std::count_if(probe.seen.begin(), probe.seen.end(),
                          [](const SeenCheckpoint& one) { return one.validated && one.intact; });
    return there >= due ? ProbeAnswer::right : ProbeAnswer::wrong;
  };
  const auto turns = {EventKind::validated, EventKind::found, EventKind::rejected, EventKind::retired,
                      EventKind::fault_fired};
  if (const auto wrong = first_wrong_probe(run, turns, counts, too_few)) {
    const Event& event = run.event(*wrong);
    const ProbeResult& probe = run.history().probe(event);
    return Verdict::fail(counts.total(),
                         fmt::format("{}, view {}: {} validated checkpoints are whole, {} must be; on the disk: {}",
                                     place_of(event), to_string(probe.view), there, due, list(probe.seen)));
  }
  std::int64_t retired = 0;
  std::string wrong = check_retired(run, keep, retired);
  if (!wrong.empty()) return Verdict::fail(counts.total() + retired, std::move(wrong));
  return Verdict::pass(counts.total() + retired, counts.in_words(run.plan().world));
}

}  // namespace firedrill
