#include "engine/train/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/base/text.h"

namespace firedrill {
namespace {

// Of a group as every rank that holds the same calls it: a flat shard is another one for another dp place.
std::string name_of_group(const StateGroup& group) {
  if (group.tensors.empty()) return group.name + " (empty)";
  return fmt::format("{} {}+{}", group.name, name_of(group.tensors.front()), group.count);
}

Value digests_of(const StateView& view) {
  std::vector<std::int64_t> words;
  for (const StateGroup& group : view) {
    const Digest digest = group.value.digest();
    words.push_back(static_cast<std::int64_t>(digest.high));
    words.push_back(static_cast<std::int64_t>(digest.low));
  }
  return Value::copy_of(std::span<const std::int64_t>(words));
}

std::string in_words(const std::vector<int>& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(numbers, ", "));
}

}  // namespace

ReplicaTable replica_table_of(const Job& job, const Layout& layout, const Model& model) {
  ReplicaTable table;
  std::map<std::string, std::size_t> numbers;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    std::vector<std::size_t>& held = table.holds.emplace_back();
    for (const StateGroup& group : blank_view(model, holdings_of(job, layout, model, rank))) {
      const auto [place, fresh] = numbers.try_emplace(name_of_group(group), table.names.size());
      if (fresh) table.names.push_back(group.name);
      held.push_back(place->second);
    }
  }
  return table;
}

ReplicaCheck::Finding ReplicaCheck::judge(std::size_t group, const std::vector<std::pair<int, Digest>>& replicas) {
  std::map<Digest, std::size_t> votes;
  for (const auto& [rank, digest] : replicas) ++votes[digest];
  Finding finding{.group = group};
  if (votes.size() <= 1) return finding;
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  const bool majority = 2 * most->second > replicas.size();
  for (const auto& [rank, digest] : replicas) {
    if (!majority || digest != most->first) finding.ranks.push_back(rank);
  }
  finding.minority = majority ? finding.ranks.front() : -2;
  return finding;
}

Digest ReplicaCheck::told(const Value& all, std::size_t rank, std::size_t group) {
  const auto words = all[rank].as<std::uint64_t>();
  return {.high = words[2 * group], .low = words[2 * group + 1]};
}

ReplicaCheck::Finding ReplicaCheck::worst_of(const Value& all) const {
  std::vector<std::vector<std::pair<int, Digest>>> replicas(table_.names.size());
  for (std::size_t rank = 0; rank < table_.holds.size(); ++rank) {
    for (std::size_t i = 0; i < table_.holds[rank].size(); ++i) {
      replicas[table_.holds[rank][i]].emplace_back(static_cast<int>(rank), told(all, rank, i));
    }
  }
  std::optional<Finding> worst;
  for (std::size_t group = 0; group < table_.names.size(); ++group) {
    Finding finding = judge(group, replicas[group]);
    // One that says who it is tells more than one that does not.
    const bool better = finding.minority != -1 && (!worst || (worst->minority < 0 && finding.minority >= 0));
    if (better) worst = std::move(finding);
  }
  return worst.value_or(Finding{});
}

Status ReplicaCheck::compare(const StateView& view) {
  const PhaseScope scope(parts_.position, Phase::exchange);
  const Call call{.purpose = "replica_check", .deadline = parts_.clock.now() + job_.cluster.deadline};
  FD_TRY(const Value all, parts_.collectives.all_gather(groups_.world, digests_of(view), call));
  struct First {
    Digest digest;
    std::int64_t replicas = 0;
  };
  std::vector<First> firsts(table_.names.size());
  bool equal = true;
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < table_.holds.size(); ++rank) {
    const std::vector<std::size_t>& held = table_.holds[rank];
    const Value& own = all[rank];
    if (!own || own.is_pack() || own.count() != 2 * static_cast<std::int64_t>(held.size())) {
      return Error{.code = Code::mismatch, .message = fmt::format("rank {} told other than its digests", rank)};
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
      First& first = firsts[held[i]];
      const Digest digest = told(all, rank, i);
      if (first.replicas++ == 0) first.digest = digest;
      equal = equal && first.digest == digest;
      most = std::max(most, first.replicas);
    }
  }
  return report(equal ? Finding{} : worst_of(all), most);
}

Status ReplicaCheck::report(const Finding& finding, std::int64_t replicas) {
  const bool equal = finding.minority == -1;
  const std::string what = equal ? "parameters, moments and counters" : table_.names[finding.group];
  emit(parts_.observer, parts_.position,
       {.kind = EventKind::replicas_compared,
        .a = replicas,
        .b = finding.minority,
        .name = parts_.observer.intern(what)});
  if (equal || !rules_.ends_on_different_replicas()) return {};
  const std::string who = finding.minority >= 0
                              ? fmt::format("{} has other bits than most", in_words(finding.ranks))
                              : fmt::format("{} differ, and nobody can tell which is right", in_words(finding.ranks));
  return Error{.code = Code::corrupted,
               .message = fmt::format("replicas of {} after step {}: {}", what, parts_.position.step, who),
               .hint = "nothing of this step was saved; if the same rank is named again, take its node out"};
}

}  // namespace firedrill
