#include "harness/diagnose/figures.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "harness/diagnose/samples.h"

namespace firedrill {
namespace {

using samples::At;
using samples::BySteps;
using samples::Calls;
using samples::each;
using samples::Step;
using samples::Talk;

std::optional<StepPart> part_of(Phase phase) {
  switch (phase) {
    case Phase::input: return StepPart::input;
    case Phase::forward: return StepPart::forward;
    case Phase::backward: return StepPart::backward;
    case Phase::exchange: return StepPart::exchange;
    case Phase::optimizer: return StepPart::optimizer;
    case Phase::save: return StepPart::checkpoint;
    default: return std::nullopt;
  }
}

std::int64_t quantile(std::vector<std::int64_t> samples, std::size_t percent) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[std::max<std::size_t>(1, (samples.size() * percent + 99) / 100) - 1];
}

std::int64_t least_of(const std::vector<std::int64_t>& samples) {
  return samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end());
}

// The layout in which most steps were done, and the attempts in it.
struct Chosen {
  Layout layout;
  std::set<int> attempts;
};

Chosen chosen_of(const History& history, const Plan& plan) {
  std::map<int, bool> other;  // by attempt: whether it had the recovery's layout
  for (const std::uint32_t i : history.of(EventKind::attempt_started)) {
    const Event& event = history[i];
    const std::string_view text = history.text(event.name);
    other[event.attempt] = plan.recovery.layout && text != to_string(plan.layout);
  }
  std::array<int, 2> done{};
  for (const std::uint32_t i : history.of(EventKind::step_done)) ++done[other[history[i].attempt] ? 1U : 0U];
  const bool choice = done[1] > done[0];
  Chosen chosen{.layout = plan.layout_if(choice), .attempts = {}};
  for (const auto& [attempt, is_other] : other) {
    if (is_other == choice) chosen.attempts.insert(attempt);
  }
  return chosen;
}

class Reader {
 public:
  Reader(const History& history, Chosen chosen) : history_(history), chosen_(std::move(chosen)) {}

  void read() {
    for (const std::uint32_t i : history_.of(EventKind::step_done)) {
      if (counts(history_[i])) steps_[history_[i].rank][at(history_[i])];
    }
    for (const std::uint32_t i : history_.of(EventKind::time_spent)) read_time(history_[i]);
    for (const std::uint32_t i : history_.of(EventKind::exchanged)) read_exchange(history_[i]);
    for (const std::uint32_t i : history_.of(EventKind::disk_changed)) {
      const Event& event = history_[i];
      if (event.phase != Phase::save) continue;
      if (Step* step = step_of(event)) ++step->file_changes;
    }
    for (const std::uint32_t i : history_.of(EventKind::acknowledged)) {
      if (Step* step = step_of(history_[i])) step->saved = true;
    }
    for (auto& [rank, steps] : steps_) {
      std::erase_if(steps, [](const auto& one) { return !one.second.told; });
    }
    if (ends_early()) leave_out_the_last_step();
    beside_ = !history_.of(EventKind::save_dispatched).empty();
  }

  Figures figures(const Plan& plan) const {
    Figures figures{.plan = plan};
    figures.plan.layout = chosen_.layout;
    std::set<At> all;
    for (const auto& [rank, steps] : steps_) {
      figures.ranks.push_back(rank_of(figures.plan, rank, steps));
      figures.step = std::max(figures.step, figures.ranks.back().step);
      for (const auto& [at, step] : steps) all.insert(at);
    }
    figures.steps = static_cast<int>(all.size());
    figures.ends_early = ends_early();
    figures.checkpoint = beside_ ? 0 : checkpoint();
    figures.idle_in_pipeline = idle_in_pipeline();
    add_links(figures);
    add_groups(figures);
    return figures;
  }

 private:
  static At at(const Event& event) { return {event.attempt, event.step}; }
  bool is_in_world(int rank) const { return rank >= 0 && rank < chosen_.layout.world_size(); }
  bool counts(const Event& event) const { return is_in_world(event.rank) && chosen_.attempts.contains(event.attempt); }
  // A hundred days; sums of what is longer would not fit. No run tells such a figure: it is left out.
  static bool is_time(std::int64_t part, std::int64_t whole) {
    return 0 <= part && part <= whole && whole < std::int64_t{1} << 53;
  }
  bool ends_early() const { return history_.of(EventKind::run_ended).empty(); }
  // A history that was cut off may hold half of a rank's last account, and none of its peers'.
  void leave_out_the_last_step() {
    int attempt = 0;
    for (const Event& event : history_.events()) attempt = std::max(attempt, event.attempt);
    std::optional<At> last;
    for (const auto& [rank, steps] : steps_) {
      if (steps.empty() || steps.rbegin()->first.first != attempt) continue;
      last = std::min(last.value_or(steps.rbegin()->first), steps.rbegin()->first);
    }
    if (!last) return;
    const auto left_out = [last](const auto& one) { return one.first >= *last; };
    for (auto& [rank, steps] : steps_) std::erase_if(steps, left_out);
    for (auto& [name, ranks] : groups_) {
      for (auto& [rank, steps] : ranks) std::erase_if(steps, left_out);
    }
    for (auto& [ends, talk] : talks_) talk.leave_out(*last);
  }
  // nullptr: that step was not completed.
  Step* step_of(const Event& event) {
    const auto rank = steps_.find(event.rank);
    if (rank == steps_.end()) return nullptr;
    const auto step = rank->second.find(at(event));
    return step == rank->second.end() ? nullptr : &step->second;
  }

  void read_time(const Event& event) {
    Step* step = step_of(event);
    if (step == nullptr || !is_time(event.b, event.a)) return;
    const std::string_view name = history_.text(event.name);
    if (name == "pipeline") {
      step->window += event.a;
      step->idle += event.b;
      return;
    }
    const std::optional<Phase> phase = phase_from(name);
    if (!phase) {
      if (name != "other") groups_[std::string(name)][event.rank][at(event)].time += event.a;
      return;
    }
    if (is_of_a_publish(*phase)) step->save += event.a;
    const std::optional<StepPart> part = part_of(*phase);
    if (!part) return;
    (*part == StepPart::checkpoint ? step->save_told : step->told) = true;
    step->parts[static_cast<std::size_t>(*part)].own += event.a - event.b;
    step->parts[static_cast<std::size_t>(*part)].waiting += event.b;
    if (*part != StepPart::checkpoint) step->total += event.a;
  }

  void read_exchange(const Event& event) {
    Step* step = step_of(event);
    if (step == nullptr || !is_time(0, event.a) || !is_time(0, event.b) || !is_time(0, event.c)) return;
    const std::string_view group = history_.text(event.name);
    if (group != link_group) {
      Calls& calls = groups_[std::string(group)][event.rank][at(event)];
      calls.calls += event.c;
      calls.bytes += event.a;
      const std::string_view operation = history_.text(event.detail);
      if (operation == "all_reduce" || operation == "reduce_scatter") {
        calls.reductions += event.c;
        calls.reduced_bytes += event.a;
      }
      return;
    }
    const std::string_view words = history_.text(event.detail);
    const bool sent = words.starts_with("to ");
    const std::string_view number = words.substr(words.find(' ') + 1);
    int peer = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), peer);
    const bool is_rank = error == std::errc{} && end == number.data() + number.size() && is_in_world(peer);
    if (!is_rank) return;  // nothing is known of such a peer
    Talk& talk = talks_[{event.rank, peer}];
    const std::int64_t each = event.b / std::max<std::int64_t>(1, event.c);
    if (!sent) {
      talk.under_way.add(at(event), event.phase, {.each = each, .messages = event.c});
      return;
    }
    Talk::Sent& sent_in_step = talk.sent[at(event)];
    sent_in_step.messages += event.c;
    sent_in_step.bytes += event.a;
    talk.sending.add(at(event), event.phase, {.each = each, .messages = event.c});
    if (const auto part = part_of(event.phase)) step->parts[static_cast<std::size_t>(*part)].own -= event.b;
  }

  static bool has_a_save(const Step& step) { return step.save_told && step.saved && step.file_changes > 0; }

  static RankFigures rank_of(const Plan& plan, int rank, const BySteps<Step>& steps) {
    RankFigures figures{
        .rank = rank, .stage = place_of(plan.job, plan.layout, rank).pp, .node = node_of(plan.job, rank), .parts = {}};
    figures.steps = static_cast<int>(steps.size());
    for (std::size_t p = 0; p < step_parts.size(); ++p) {
      const bool saves = step_parts[p] == StepPart::checkpoint;
      std::vector<std::int64_t> own;
      std::vector<std::int64_t> waiting;
      for (const auto& [at, step] : steps) {
        if (saves && !has_a_save(step)) continue;
        own.push_back(step.parts[p].own);
        waiting.push_back(step.parts[p].waiting);
      }
      // Of an exchange the least: whoever wakes a peer may lose its core to it.
      const bool exchange = step_parts[p] == StepPart::exchange;
      figures.parts[p] = {.own = exchange ? least_of(own) : typical_of(own), .waiting = typical_of(waiting)};
    }
    std::vector<std::int64_t> per_change;
    for (const auto& [at, step] : steps) {
      const PartOfRank& save = step.parts[static_cast<std::size_t>(StepPart::checkpoint)];
      if (has_a_save(step)) per_change.push_back(save.own / step.file_changes);
    }
    figures.saves = static_cast<int>(per_change.size());
    figures.per_file_change = typical_of(per_change);
    figures.step = median_of(each(steps, [](const Step& step) { return step.total; }));
    return figures;
  }

  std::int64_t checkpoint() const {
    BySteps<std::int64_t> longest;
    for (const auto& [rank, steps] : steps_) {
      for (const auto& [at, step] : steps) {
        if (step.saved && step.save > 0) longest[at] = std::max(longest[at], step.save);
      }
    }
    return median_of(each(longest, [](std::int64_t time) { return time; }));
  }

  double idle_in_pipeline() const {
    double least = 1;
    for (const auto& [rank, steps] : steps_) {
      std::vector<std::int64_t> permille;
      for (const auto& [at, step] : steps) {
        if (step.window > 0) permille.push_back(step.idle * 1000 / step.window);
      }
      least = std::min(least, permille.empty() ? 0 : static_cast<double>(typical_of(permille)) / 1000);
    }
    return steps_.empty() ? 0 : least;
  }

  static int kind_of(const Plan& plan, int low, int high) {
    const RankPlace a = place_of(plan.job, plan.layout, low);
    const RankPlace b = place_of(plan.job, plan.layout, high);
    return (a.dp != b.dp ? 1 : 0) + (a.tp != b.tp ? 2 : 0) + (a.cp != b.cp ? 4 : 0) + (a.pp != b.pp ? 8 : 0);
  }

  void add_links(Figures& figures) const {
    for (const auto& [ends, there] : talks_) {
      const auto back = talks_.find({ends.second, ends.first});
      if (ends.first > ends.second || back == talks_.end()) continue;
      const Talk& here = back->second;
      const Talk::Sent out = there.all();
      const Talk::Sent in = here.all();
      if (out.messages + in.messages == 0) continue;
      figures.links.push_back({.rank = ends.first,
                               .peer = ends.second,
                               .kind = kind_of(figures.plan, ends.first, ends.second),
                               .messages = static_cast<double>(out.messages + in.messages) / std::max(1, figures.steps),
                               .bytes = out.bytes + in.bytes,
                               .sending = std::max(there.sending.typical(), here.sending.typical()),
                               .under_way = std::min(there.under_way.typical(), here.under_way.typical())});
    }
  }

  void add_groups(Figures& figures) const {
    for (const auto& [name, ranks] : groups_) {
      if (name == "world" || name == "publish") continue;  // of starts and saves
      GroupFigures group{.name = name, .time = -1};
      for (const auto& [rank, steps] : ranks) {
        const auto typical = [&steps = steps](std::int64_t Calls::*figure) {
          return median_of(each(steps, [figure](const Calls& one) { return one.*figure; }));
        };
        const std::int64_t time = typical_of(each(steps, [](const Calls& one) { return one.time; }));
        group.time = group.time < 0 ? time : std::min(group.time, time);
        group.calls = std::max(group.calls, typical(&Calls::calls));
        group.bytes = std::max(group.bytes, typical(&Calls::bytes));
        group.reductions = std::max(group.reductions, typical(&Calls::reductions));
        group.reduced_bytes = std::max(group.reduced_bytes, typical(&Calls::reduced_bytes));
      }
      figures.groups.push_back(group);
    }
  }

  const History& history_;
  const Chosen chosen_;
  std::map<int, BySteps<Step>> steps_;         // by rank
  std::map<std::pair<int, int>, Talk> talks_;  // by rank and peer
  std::map<std::string, std::map<int, BySteps<Calls>>> groups_;
  bool beside_ = false;
};

}  // namespace

std::string_view to_string(StepPart part) {
  constexpr std::array<std::string_view, step_parts.size()> names = {"input",    "forward",   "backward",
                                                                     "exchange", "optimizer", "checkpoint"};
  return names[static_cast<std::size_t>(part)];
}

std::int64_t typical_of(std::vector<std::int64_t> samples) {
  const std::size_t percent = samples.size() < few ? 0 : 25;
  return quantile(std::move(samples), percent);
}
std::int64_t median_of(std::vector<std::int64_t> samples) { return quantile(std::move(samples), 50); }

Figures figures_of(const History& history, const Plan& plan) {
  Reader reader(history, chosen_of(history, plan));
  reader.read();
  return reader.figures(plan);
}

}  // namespace firedrill
