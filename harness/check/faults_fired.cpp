// faults_fired: a drill in which the fault did not happen proves nothing.
//
// Verified: each planned fault was journaled at least once, unless the scenario lets it stay out (may_not_fire).
// Not verified: that it fired as often as `times` says, because the run may end before; that its effect is the one it
// names: the tests of each fault's decorator do that.
// A fault that stayed out makes the verdict unknown, never fail: the engine did nothing wrong.
#include <fmt/format.h>

#include "faults/spec.h"
#include "harness/check/all.h"

namespace firedrill {
namespace {

// As the world announced it.
std::string in_words(const Case& run, std::size_t index) {
  for (const std::uint32_t position : run.history().of(EventKind::fault_planned)) {
    const Event& event = run.event(position);
    if (event.a == static_cast<std::int64_t>(index)) return std::string(run.history().text(event.name));
  }
  return fmt::format("fault {} of the plan", index);
}

}  // namespace

Verdict judge_faults_fired(const Case& run) {
  const std::vector<FaultSpec>& planned = run.plan().faults;
  std::vector<bool> fired(planned.size(), false);
  for (const std::uint32_t position : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(position);
    if (!run.fault(event)) {
      return Verdict::unknown(0, fmt::format("fault {} fired, and the plan has {}", event.a, planned.size()));
    }
    fired[static_cast<std::size_t>(event.a)] = true;
  }
  std::int64_t checked = 0;
  std::string missing;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (!fired[i] && planned[i].may_not_fire) continue;
    ++checked;
    if (fired[i]) continue;
    missing += fmt::format("{}{}", missing.empty() ? "did not fire: " : "; ", in_words(run, i));
  }
  if (!missing.empty()) return Verdict::unknown(checked, missing);
  return Verdict::pass(checked);
}

}  // namespace firedrill
