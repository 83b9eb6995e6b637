#include "harness/explore/swarm/coverage.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "faults/operations.h"
#include "faults/trigger.h"

namespace firedrill {
namespace {

// Changes of a rank's, the group's or the run's state. What only waits, looks or measures is not among them.
constexpr EventKind state_kinds[] = {
    EventKind::attempt_ended,  EventKind::rank_ended,     EventKind::node_lost,       EventKind::run_ended,
    EventKind::floor_lowered,  EventKind::fault_fired,    EventKind::step_done,       EventKind::found,
    EventKind::restored,       EventKind::started_fresh,  EventKind::save_dispatched, EventKind::committed,
    EventKind::validated,      EventKind::save_failed,    EventKind::acknowledged,    EventKind::retired,
    EventKind::rejected,       EventKind::damage,         EventKind::suspected,       EventKind::replicas_compared,
    EventKind::rerun_differed, EventKind::preempt_agreed,
};

// Whose name is the identity of a checkpoint; other names are words, and may tell times.
bool names_a_checkpoint(EventKind kind) {
  return kind == EventKind::found || kind == EventKind::committed || kind == EventKind::retired ||
         kind == EventKind::rejected || kind == EventKind::damage;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Case& run, const Event& event) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(event.kind), static_cast<std::uint64_t>(event.attempt));
  hash = mixed(hash, static_cast<std::uint64_t>(event.step));
  hash = mixed(hash, static_cast<std::uint64_t>(event.phase));
  hash = mixed(hash, static_cast<std::uint64_t>(event.a));
  hash = mixed(hash, static_cast<std::uint64_t>(event.b));
  hash = mixed(hash, event.digest.low);
  if (names_a_checkpoint(event.kind)) hash = mixed(hash, run.history().tables().names.digest(event.name).low);
  return hash;
}

Digest digest_of_states(const Case& run) {
  std::vector<std::uint64_t> chains;  // by rank + 1
  std::vector<std::uint32_t> order;
  for (const EventKind kind : state_kinds) {
    const auto of = run.history().of(kind);
    order.insert(order.end(), of.begin(), of.end());
  }
  std::ranges::sort(order);
  for (const std::uint32_t at : order) {
    const Event& event = run.event(at);
    const auto rank = static_cast<std::size_t>(event.rank + 1);
    if (chains.size() <= rank) chains.resize(rank + 1);
    chains[rank] = mixed(chains[rank], hash_of(run, event));
  }
  return digest_of(std::span<const std::uint64_t>(chains));
}

constexpr std::string_view reach_feature = "reach ";
constexpr std::string_view situation_feature = "situation ";

std::size_t situation_named(std::string_view name) {
  const auto all = situations();
  return static_cast<std::size_t>(std::ranges::find(all, name, &Situation::name) - all.begin());
}

}  // namespace

std::string to_string(const Reach& reach) {
  std::string text = fmt::format("{} in {}", to_string(reach.kind), to_string(reach.phase));
  if (reach.operation > 0) text += fmt::format(" at {}", to_string(static_cast<FileOp>(reach.operation - 1)));
  return text;
}

Sighting sighting_of(const Case& run) {
  Sighting sighting{.states = digest_of_states(run), .reached = {}, .situations = situations_in(run)};
  for (const std::uint32_t at : run.history().of(EventKind::fault_fired)) {
    const Event& event = run.event(at);
    if (const FaultSpec* fault = run.fault(event)) {
      sighting.reached.push_back({fault->kind, event.phase, static_cast<int>(event.b)});
    }
  }
  return sighting;
}

std::set<Reach> reachable(const KindWeights& weights, CatalogKind catalog) {
  std::set<Reach> all;
  for (const FaultKindInfo& info : fault_kinds()) {
    if (weights[static_cast<std::size_t>(info.kind)] == 0) continue;
    FaultSpec any{.kind = info.kind, .at = {}};
    for (int i = 0; i < phase_count; ++i) {
      const auto phase = static_cast<Phase>(i);
      if (phase_weights()[static_cast<std::size_t>(i)] == 0) continue;
      const Operations here = operations_of(any) & operations_in(phase, true, false, catalog);
      for (std::size_t op = 0; op < file_op_count; ++op) {
        if (here[op]) all.insert({info.kind, phase, 1 + static_cast<int>(op)});
      }
      if ((here & ~only(SeamOp::file)).any()) all.insert({info.kind, phase, 0});
    }
  }
  return all;
}

bool Coverage::add(const Sighting& sighting) {
  histories_.insert(sighting.states);
  bool news = false;
  for (const Reach& reach : sighting.reached) news = reached_.insert(reach).second || news;
  for (std::size_t i = 0; i < situations().size(); ++i) {
    if (!sighting.situations[i]) continue;
    news = news || (sighting.situations & ~pairs_[i]).any();
    pairs_[i] |= sighting.situations;
  }
  situations_ |= sighting.situations;
  return news;
}

std::vector<std::string> Coverage::features() const {
  std::vector<std::string> list;
  for (const Reach& reach : reached_) {
    list.push_back(
        fmt::format("{}{} {} {}", reach_feature, to_string(reach.kind), to_string(reach.phase), reach.operation));
  }
  for (std::size_t i = 0; i < situations().size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      if (!pairs_[i][j]) continue;
      list.push_back(fmt::format("{}{} {}", situation_feature, situations()[i].name, situations()[j].name));
    }
  }
  return list;
}

void Coverage::load(const std::vector<std::string>& features) {
  for (const std::string& feature : features) {
    const std::vector<std::string> words = split(feature, ' ');
    if (feature.starts_with(reach_feature) && words.size() == 4) {
      const auto phase = phase_from(words[2]);
      const auto kind = std::ranges::find(fault_kinds(), words[1], &FaultKindInfo::name);
      const auto operation = parse_whole(words[3]);
      if (phase && operation && kind != fault_kinds().end()) {
        reached_.insert({kind->kind, *phase, static_cast<int>(*operation)});
      }
    }
    if (feature.starts_with(situation_feature) && words.size() == 3) {
      const std::size_t i = situation_named(words[1]);
      const std::size_t j = situation_named(words[2]);
      if (i == situations().size() || j == situations().size()) continue;  // of an older build
      pairs_[i][j] = pairs_[j][i] = true;
      situations_[i] = situations_[j] = true;
    }
  }
}

}  // namespace firedrill
