#include "harness/report/told.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/units.h"
#include "engine/seam/file_system.h"
#include "harness/report/accounting.h"

namespace firedrill {
namespace {

std::string ending_of(std::string_view why, const Event& event) {
  switch (event.a) {
    case 0: return "finished";
    case 1: return fmt::format("failed: {}", why);
    case 2: return why.empty() ? "died" : fmt::format("died: {}", why);
    default: return fmt::format("failed a check of its own: {}", why);
  }
}

std::string loss_of(const Event& event) {
  return fmt::format("node {} lost{}{}", event.a, event.b != 0 ? ", with its unsynced data" : "",
                     event.c != 0 ? ", with its unsynced names" : "");
}

std::string comparison_of(std::string_view what, const Event& event) {
  if (event.b == -1) return fmt::format("{} replicas of {} are equal", event.a, what);
  if (event.b == -2) return fmt::format("{} replicas of {} differ, none with a majority", event.a, what);
  return fmt::format("of {} replicas of {} that of rank {} differs", event.a, what, event.b);
}

std::string change_of(std::string_view path, std::string_view second, const Event& event) {
  std::string text = fmt::format("{} {}", to_string(static_cast<FileOp>(event.a)), path.empty() ? "the root" : path);
  if (!second.empty()) text += fmt::format(" to {}", second);
  if (event.b > 0) text += fmt::format(", {}", format_bytes(event.b));
  if (event.c > 0) text += fmt::format(", failed: {}", to_string(static_cast<Code>(event.c - 1)));
  return text;
}

std::string_view with(std::string_view text, std::string_view otherwise) { return text.empty() ? otherwise : text; }

// By the supervisor or the world.
std::optional<Told> told_of_world(const History& history, const Event& event) {
  const std::string_view name = history.text(event.name);
  switch (event.kind) {
    case EventKind::attempt_started:
      return Told{"▶", fmt::format("attempt {}: {} ranks, {}{}", event.attempt, event.a, name,
                                   event.b < 0 ? "" : fmt::format(", floor {}", event.b))};
    case EventKind::attempt_ended: return Told{"■", fmt::format("attempt {} ended: {}", event.attempt, name)};
    case EventKind::rank_ended: return Told{event.a == 0 ? "○" : "✖", ending_of(name, event)};
    case EventKind::node_lost: return Told{"✖", loss_of(event)};
    case EventKind::run_ended: return Told{"■", fmt::format("run ended: {}", name)};
    case EventKind::floor_lowered: return Told{"↓", fmt::format("floor lowered from {} to {}", event.a, event.b)};
    case EventKind::fault_planned: return Told{"▽", fmt::format("planned: {}", name)};
    case EventKind::fault_fired: return Told{"▼", std::string(name)};
    default: return std::nullopt;
  }
}

std::optional<Told> told_of_checkpoints(const History& history, const Event& event) {
  const std::string_view name = history.text(event.name);
  const std::string_view detail = history.text(event.detail);
  switch (event.kind) {
    case EventKind::found: return Told{"?", fmt::format("found {}", event.a < 0 ? "nothing" : name)};
    case EventKind::restored: return Told{"↺", fmt::format("restored {}", name)};
    case EventKind::started_fresh: return Told{"↺", "begins at step 0"};
    case EventKind::save_dispatched: return Told{"◇", "dispatched a save"};
    case EventKind::save_started: return Told{"◇", fmt::format("began to save, try {}", event.a)};
    case EventKind::shard_written: return Told{"▪", fmt::format("wrote {}, {}", name, format_bytes(event.b))};
    case EventKind::committed: return Told{"◆", fmt::format("committed {}", name)};
    case EventKind::validated: return Told{"◈", fmt::format("validated {}", name)};
    case EventKind::save_failed:
      return Told{"✖", fmt::format("{} failed: {}", event.b != 0 ? "the save" : "a try to save", name)};
    case EventKind::acknowledged: return Told{"●", fmt::format("acknowledged {}", name)};
    case EventKind::retired: return Told{"-", fmt::format("retired {}", name)};
    case EventKind::rejected: return Told{"✖", fmt::format("rejected {}: {}", name, detail)};
    case EventKind::damage: return Told{"✖", fmt::format("{} is damaged: {}", name, detail)};
    case EventKind::disk_changed: return Told{"·", change_of(name, detail, event)};
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Told> told_of(const History& history, const Event& event) {
  if (auto told = told_of_world(history, event)) return told;
  if (auto told = told_of_checkpoints(history, event)) return told;
  const std::string_view name = history.text(event.name);
  switch (event.kind) {
    case EventKind::rank_started: return Told{"▷", "started"};
    case EventKind::step_done: return Told{"+", event.a != 0 ? "did the step, and skipped its update" : "did the step"};
    case EventKind::suspected:
      return Told{"!", event.a < 0 ? fmt::format("blames nobody: waited for {}", history.text(event.detail))
                                   : fmt::format("blames rank {}, {}: waited for {}", event.a,
                                                 to_string(static_cast<Suspicion>(event.b)),
                                                 with(history.text(event.detail), name))};
    case EventKind::replicas_compared: return Told{event.b == -1 ? "=" : "!", comparison_of(name, event)};
    case EventKind::rerun_differed: return Told{"!", fmt::format("{} gave another result when computed again", name)};
    case EventKind::preempt_agreed: return Told{"!", fmt::format("all leave after step {}", event.a)};
    case EventKind::note: return Told{" ", std::string(name)};
    default: return std::nullopt;
  }
}

std::string line_of(const Event& event, const Told& told) {
  std::string where;
  if (event.step > 0) where = fmt::format("step {} ", event.step);
  if (event.phase != Phase::none) where += to_string(event.phase);
  return fmt::format("{:>10} {:>2}  {:<5} {:<20} {} {}", duration_text(event.time.count()), event.attempt,
                     event.rank < 0 ? "" : fmt::format("r{}", event.rank), where, told.glyph, told.words);
}

}  // namespace firedrill
