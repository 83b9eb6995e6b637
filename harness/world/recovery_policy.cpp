#include "harness/world/recovery_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/base/text.h"
#include "engine/os/channel.h"

namespace firedrill {
namespace {

int nodes_of(const Job& job, const Layout& layout) { return node_of(job, layout.world_size() - 1) + 1; }

// The phase in which a rank was by the last of the events: at its end it is out of all phases.
Phase last_phase(std::span<const Event> events, int rank) {
  const auto in_a_phase = [rank](const Event& event) { return event.rank == rank && event.phase != Phase::none; };
  const auto last = std::find_if(events.rbegin(), events.rend(), in_a_phase);
  return last == events.rend() ? Phase::none : last->phase;
}

}  // namespace

Ending ending_of(const History& history, std::size_t from, int attempt) {
  Ending ending{.attempt = attempt};
  const std::span<const Event> events = history.events().subspan(from);
  for (const Event& event : events) {
    if (event.kind == EventKind::node_lost) {
      ending.nodes_lost.push_back(static_cast<int>(event.a));
      ending.loss = true;
    }
    if (event.kind != EventKind::rank_ended) continue;
    const auto end = static_cast<RankEnd>(event.a);
    if (end == RankEnd::finished || end == RankEnd::left) continue;
    if (end == RankEnd::died) ending.loss = true;
    if (ending.rank >= 0) continue;
    ending.rank = event.rank;
    ending.step = event.step;
    ending.phase = last_phase(events.first(static_cast<std::size_t>(&event - events.data()) + 1), event.rank);
    const std::string_view words = history.text(event.name);
    ending.how = words.empty() ? "killed" : std::string(words);
  }
  return ending;
}

std::string poison_in(const std::vector<Ending>& endings) {
  if (endings.size() < 2 || endings.back().rank < 0) return {};
  const Ending& last = endings.back();
  const auto other =
      std::find_if(endings.rbegin(), endings.rend(), [&last](const Ending& e) { return !e.same_place(last); });
  const auto alike = other - endings.rbegin();
  if (alike < 2) return {};
  const int first = endings[endings.size() - static_cast<std::size_t>(alike)].attempt;
  return fmt::format("attempts {} {} {} all ended at step {}, {}, rank {}: {}", first, alike == 2 ? "and" : "to",
                     last.attempt, last.step, to_string(last.phase), last.rank, last.how);
}

RecoveryState::RecoveryState(const Plan& plan) : plan_(plan), places_(nodes_of(plan.job, plan.layout)) {
  for (int node = 0; node < places_; ++node) nodes_.push_back(node);
}

AttemptOrder RecoveryState::next(int attempt) const {
  const RecoverySpec& recovery = plan_.recovery;
  AttemptOrder order{.attempt = attempt};
  order.other_layout = recovery.layout && (recovery.policy == RecoveryPolicy::fewer ? lost_ : attempt > 1);
  if (moved_) order.nodes = nodes_;
  if (attempt > 1 && recovery.backoff.initial > Duration{0}) {
    double wait = static_cast<double>(recovery.backoff.initial.count());
    const auto most = static_cast<double>(recovery.backoff.max.count());
    for (int i = 2; i < attempt && wait < most; ++i) wait *= recovery.backoff.factor;
    order.pause = Duration(static_cast<Duration::rep>(std::min(wait, most)));
  }
  return order;
}

std::string RecoveryState::nodes_in_words() const {
  if (!moved_) return {};
  std::vector<std::string> numbers;
  for (const int node : nodes_) numbers.push_back(std::to_string(node));
  return "nodes " + join(numbers, ", ");
}

std::optional<std::string> RecoveryState::take(const Ending& ending) {
  const RecoverySpec& recovery = plan_.recovery;
  if (recovery.policy == RecoveryPolicy::restart || !ending.loss) return std::nullopt;
  lost_ = true;
  for (const int node : ending.nodes_lost) {
    const auto place = std::ranges::find(nodes_, node);
    if (place == nodes_.end()) continue;
    moved_ = true;
    if (recovery.policy == RecoveryPolicy::fewer) {
      nodes_.erase(place);
    } else if (spares_used_ == recovery.spares) {
      return fmt::format("node {} is lost, and none of the {} spare nodes is left", node, recovery.spares);
    } else {
      *place = places_ + spares_used_++;
    }
  }
  if (recovery.policy == RecoveryPolicy::spare) return std::nullopt;
  const int needed = nodes_of(plan_.job, *recovery.layout);
  if (needed <= static_cast<int>(nodes_.size())) return std::nullopt;
  return fmt::format("layout {} needs {} nodes, and {} are left", to_string(*recovery.layout), needed, nodes_.size());
}

}  // namespace firedrill
