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

std::size_t ProbeAnswers::slot_of(const Digest& content) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = content.low & mask;
  const auto is_free = [](const Row& row) { return row.by_view[0] == unknown && row.by_view[1] == unknown; };
  while (!is_free(slots_[slot]) && slots_[slot].content != content) slot = (slot + 1) & mask;
  return slot;
}

ProbeAnswers::Row& ProbeAnswers::of(const Digest& content) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Row> before(std::max<std::size_t>(64, 2 * slots_.size()));
    std::swap(before, slots_);
    for (const Row& row : before) {
      if (row.by_view[0] != unknown || row.by_view[1] != unknown) slots_[slot_of(row.content)] = row;
    }
  }
  Row& row = slots_[slot_of(content)];
  if (row.by_view[0] == unknown && row.by_view[1] == unknown) {
    row.content = content;
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

std::int64_t Prober::look_up(const Digest& view_digest, ProbeView view, const Fresh& fresh, const ByClass& by_class) {
  const auto own = static_cast<std::size_t>(view);
  ProbeAnswers::Row& known = answers_.of(view_digest);
  if (known.by_view[own] != ProbeAnswers::unknown) {
    const std::int64_t answer = known.by_view[own];
    if (++hits_ % recheck_every == 0) recheck(answer, fresh(false));
    return answer;
  }
  // The two views are often of the same content, one behind the other.
  const std::int32_t other = known.by_view[1 - own];
  const std::int64_t answer =
      other != ProbeAnswers::unknown ? as_seen_in(view, other) : look_up_whole(view, fresh, by_class);
  known.by_view[own] = static_cast<std::int32_t>(answer);
  return answer;
}

std::int64_t Prober::look_up_whole(ProbeView view, const Fresh& fresh, const ByClass& by_class) {
  const auto content = [&]() -> std::optional<Digest> {
    if (of_whole_ == nullptr || !by_class) return std::nullopt;
    return by_class([this](const Digest& mark) { return class_of(mark); });
  };
  const std::optional<Digest> before = content();
  if (!before) return fresh(true);
  const auto own = static_cast<std::size_t>(view);
  ProbeAnswers::Row& known = of_whole_->of(*before);
  std::int32_t& answer = known.by_view[own];
  const std::int32_t other = known.by_view[1 - own];
  if (answer == ProbeAnswers::unknown && other != ProbeAnswers::unknown) {
    answer = static_cast<std::int32_t>(as_seen_in(view, other));
  }
  if (answer != ProbeAnswers::unknown) {
    const std::int64_t kept = answer;
    if (++hits_of_whole_ % recheck_whole_every == 0) recheck(kept, fresh(false));
    return kept;
  }
  answer = static_cast<std::int32_t>(fresh(true));
  const std::int32_t found = answer;
  // Now it may be known of one more checkpoint that it is whole.
  if (const std::optional<Digest> behind = content(); behind && behind != before) {
    of_whole_->of(*behind).by_view[own] = found;
  }
  return found;
}

// Of a checkpoint that discovery and the audit have both found whole: its state. Of any other one all its bytes, for
// this prober alone.
Digest Prober::class_of(const Digest& mark) {
  const CheckpointContents* const contents = auditor_.contents_of(mark);
  const bool whole = contents != nullptr && contents->intact && contents->provenance_coherent;
  if (whole && whole_.known.contains(mark)) return contents->state;
  return DigestBuilder().add(mark).add(digest_of(identity_.layout)).finish();
}

std::int64_t Prober::as_seen_in(ProbeView view, std::int64_t answer) {
  if (std::ssize(other_view_) <= answer)
    other_view_.resize(static_cast<std::size_t>(answer) + 1, ProbeAnswers::unknown);
  std::int32_t& other = other_view_[static_cast<std::size_t>(answer)];
  if (other == ProbeAnswers::unknown) {
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
