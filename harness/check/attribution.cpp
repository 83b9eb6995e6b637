#include "harness/check/attribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace firedrill {

std::string_view to_string(BlameKind kind) {
  switch (kind) {
    case BlameKind::mismatch: return "mismatch";
    case BlameKind::dead: return "dead";
    case BlameKind::missing: return "missing";
    case BlameKind::link: return "link";
    case BlameKind::replica: return "replica";
    case BlameKind::failed: return "failed";
    case BlameKind::slow: return "slow";
  }
  return "?";
}

std::string_view work_of(Phase phase) {
  switch (phase) {
    case Phase::save:
    case Phase::commit:
    case Phase::validate:
    case Phase::retire: return "checkpoint";
    case Phase::find:
    case Phase::restore:
    case Phase::rendezvous: return "recovery";
    default: return to_string(phase);
  }
}

std::vector<Blame> attribution_of(const Case& run) {
  std::vector<Blame> all;
  for (const AttemptSpan& attempt : run.attempts()) {
    if (auto blame = blame_of(run, attempt)) all.push_back(*std::move(blame));
  }
  return all;
}

std::string describe(const Blame& blame) {
  const std::string where = blame.sequence < 0
                                ? std::string("a call")
                                : fmt::format("{} (call {} of {})", blame.call, blame.sequence, blame.stream);
  std::string who = fmt::format("rank{} {}", blame.ranks.size() == 1 ? "" : "s", fmt::join(blame.ranks, ", "));
  const bool one = blame.ranks.size() == 1;
  const std::string place = fmt::format("step {}, {}", blame.step, work_of(blame.phase));
  switch (blame.kind) {
    case BlameKind::mismatch:
      return fmt::format("attempt {}: {} disagree{} about {} at {}: {}", blame.attempt, who, one ? "s" : "", where,
                         place, blame.what);
    case BlameKind::dead:
      return fmt::format("attempt {}: {} died at {}; the others wait in {}", blame.attempt, who, place, where);
    case BlameKind::missing:
      return fmt::format("attempt {}: {} {} missing from {} at {}", blame.attempt, who, one ? "is" : "are", where,
                         place);
    case BlameKind::link:
      return fmt::format("attempt {}: {} lost a message between them in {} at {}", blame.attempt, who, where, place);
    case BlameKind::replica:
      if (blame.ranks.empty())
        return fmt::format("attempt {}: replicas differ at {}: {}", blame.attempt, place, blame.what);
      return fmt::format("attempt {}: {} hold{} other bits than most at {}: {}", blame.attempt, who, one ? "s" : "",
                         place, blame.what);
    case BlameKind::failed:
      return fmt::format("attempt {}: {} failed at {}: {}", blame.attempt, who, place, blame.what);
    case BlameKind::slow: return fmt::format("attempt {}: {} is slow at {}: {}", blame.attempt, who, place, blame.what);
  }
  return {};
}

}  // namespace firedrill
