#include "harness/world/probe.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace firedrill {
namespace {

// What the audit says of the checkpoint that discovery chose.
void judge_found(ProbeResult& result, const AuditReport& report, StateTable& states) {
  const AuditedCheckpoint* audited = report.find(result.found);
  if (audited == nullptr || !audited->committed) {
    result.reason = "there is no manifest of it";
    return;
  }
  const CheckpointContents& contents = *audited->contents;
  result.complete = contents.intact;
  result.provenance_coherent = contents.provenance_coherent;
  if (!contents.intact) {
    result.reason = join(contents.problems, "; ");
    return;
  }
  result.state = states.find(contents.state);
  if (result.state == no_state) result.state = states.describe(contents.named_digests());
}

}  // namespace

std::size_t Prober::AnswerTable::slot_of(const Digest& view) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = view.low & mask;
  const auto is_free = [](const Answers& row) { return row.by_view[0] == unknown && row.by_view[1] == unknown; };
  while (!is_free(slots_[slot]) && slots_[slot].view != view) slot = (slot + 1) & mask;
  return slot;
}

// A row that is not there yet is counted as used: whoever asks fills it in.
Prober::Answers& Prober::AnswerTable::of(const Digest& view) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Answers> before(std::max<std::size_t>(64, 2 * slots_.size()));
    std::swap(before, slots_);
    for (const Answers& row : before) {
      if (row.by_view[0] != unknown || row.by_view[1] != unknown) slots_[slot_of(row.view)] = row;
    }
  }
  Answers& row = slots_[slot_of(view)];
  if (row.by_view[0] == unknown && row.by_view[1] == unknown) {
    row.view = view;
    ++used_;
  }
  return row;
}

std::int64_t Prober::ask(FileSystem& files, Compute& compute, ProbeView view, const Auditor::ContentMark& mark) {
  ProbeResult result{.view = view};
  whole_.mark = mark;
  const Discovery discovery =
      protocol_->discover(files, compute, {.identity = identity_, .job = job_}, mark ? &whole_ : nullptr);
  whole_.mark = {};  // it is of the caller
  const AuditReport report = auditor_.audit(files, mark);
  if (discovery.chosen) {
    result.outcome = ProbeOutcome::found;
    result.found = *discovery.chosen;
    judge_found(result, report, tables_.states);
  } else if (discovery.trouble) {
    result.outcome = ProbeOutcome::error;
    result.error = describe(*discovery.trouble);
  }
  for (const AuditedCheckpoint& seen : report.checkpoints) {
    if (seen.stands()) result.seen.push_back({.id = seen.id, .validated = seen.validated, .intact = seen.intact()});
  }
  return tables_.probes.add(std::move(result));
}

std::int64_t Prober::as_seen_in(ProbeView view, std::int64_t answer) {
  if (std::ssize(other_view_) <= answer) other_view_.resize(static_cast<std::size_t>(answer) + 1, unknown);
  std::int32_t& other = other_view_[static_cast<std::size_t>(answer)];
  if (other == unknown) {
    ProbeResult result = tables_.probes[answer];
    result.view = view;
    other = static_cast<std::int32_t>(tables_.probes.add(std::move(result)));
  }
  return other;
}

void Prober::recheck(std::int64_t kept, std::int64_t fresh) const {
  FD_CHECK(tables_.probes.digest(kept) == tables_.probes.digest(fresh),
           "the disk was probed again and gave another answer: result {} instead of {}", fresh, kept);
}

}  // namespace firedrill
