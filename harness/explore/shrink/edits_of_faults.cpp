// Fewer faults, of simpler kinds, at earlier places.
#include <algorithm>
#include <functional>

#include "harness/explore/shrink/edits.h"

namespace firedrill {
namespace {

using FaultList = std::vector<FaultSpec>;

Plan with(const Plan& plan, FaultList faults) {
  Plan other = plan;
  other.faults = std::move(faults);
  return other;
}

FaultList without(const FaultList& faults, std::size_t begin, std::size_t end) {
  FaultList rest = faults;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(begin), rest.begin() + static_cast<std::ptrdiff_t>(end));
  return rest;
}

// What the removed fault ended no longer ends: those behind it come an attempt earlier.
bool move_up(FaultList& faults, const FaultSpec& removed) {
  const int gone = removed.at.attempt.value_or(1);
  bool moved = false;
  for (FaultSpec& fault : faults) {
    if (!fault.at.attempt || *fault.at.attempt <= gone) continue;
    --*fault.at.attempt;
    moved = true;
  }
  return moved;
}

// Kinds by how much a reader must know to follow what they do.
int complexity(FaultKind kind) {
  if (kind == FaultKind::kill) return 0;
  if (kind == FaultKind::io_error) return 1;
  const auto& kinds = fault_kinds();
  const auto first = std::ranges::find(kinds, info_of(kind).harm, &FaultKindInfo::harm);
  return first->kind == kind ? 2 : 3;
}

FaultSpec as_kind(const FaultSpec& fault, FaultKind kind) {
  FaultSpec other{.kind = kind, .at = fault.at, .times = fault.times};
  other.delay = fault.delay;
  other.may_not_fire = fault.may_not_fire;
  if (!info_of(kind).has_after) other.at.when = When::before;
  if (other.at.op && !can_be_about(kind, *other.at.op)) {
    other.at.op.reset();
    other.at.file_op.reset();
    other.at.path.clear();
  }
  return other;
}

// Without what only narrows a fault or varies it.
std::vector<FaultSpec> plainer(const FaultSpec& fault) {
  std::vector<FaultSpec> list;
  const auto change = [&](auto edit) {
    FaultSpec other = fault;
    edit(other);
    list.push_back(other);
  };
  if (fault.lose_unsynced_data) change([](FaultSpec& other) { other.lose_unsynced_data = false; });
  if (fault.lose_unsynced_names) change([](FaultSpec& other) { other.lose_unsynced_names = false; });
  if (fault.times != 1) change([](FaultSpec& other) { other.times = 1; });
  if (fault.at.when == When::after) change([](FaultSpec& other) { other.at.when = When::before; });
  if (!fault.at.path.empty()) change([](FaultSpec& other) { other.at.path.clear(); });
  if (fault.lost != Part::last) change([](FaultSpec& other) { other.lost = Part::last; });
  if (fault.lands_in != Landing::offset) change([](FaultSpec& other) { other.lands_in = Landing::offset; });
  if (fault.code != 0) change([](FaultSpec& other) { other.code = 0; });
  if (fault.damage != PayloadDamage::bit) change([](FaultSpec& other) { other.damage = PayloadDamage::bit; });
  if (fault.peer) change([](FaultSpec& other) { other.peer.reset(); });
  if (!fault.group.empty()) change([](FaultSpec& other) { other.group.clear(); });
  if (fault.one_way) change([](FaultSpec& other) { other.one_way = false; });
  if (fault.lasts > Duration{0}) change([](FaultSpec& other) { other.lasts = Duration{0}; });
  if (fault.looks > 1) change([](FaultSpec& other) { other.looks = 1; });
  return list;
}

// Below `value`, not below `low`: the lowest, half way, one less.
template <class T>
std::vector<T> below(T value, T low) {
  std::vector<T> list;
  for (const T lower : {low, low + (value - low) / 2, value - 1}) {
    if (lower < value && lower >= low && std::ranges::find(list, lower) == list.end()) list.push_back(lower);
  }
  return list;
}

std::vector<FaultSpec> earlier(const FaultSpec& fault, const Job& job) {
  std::vector<FaultSpec> list;
  const auto change = [&](auto edit) {
    FaultSpec other = fault;
    edit(other);
    list.push_back(other);
  };
  if (!fault.at.attempt) change([](FaultSpec& other) { other.at.attempt = 1; });
  if (fault.at.attempt) {
    for (const int lower : below(*fault.at.attempt, 1)) change([&](FaultSpec& other) { other.at.attempt = lower; });
  }
  if (fault.at.step) {
    std::vector<std::int64_t> steps = below(*fault.at.step, std::int64_t{1});
    const std::int64_t every = job.checkpoint.every;
    for (const std::int64_t save : {every, *fault.at.step - every}) {  // only there is anything saved
      if (save >= 1 && save < *fault.at.step && std::ranges::find(steps, save) == steps.end()) steps.push_back(save);
    }
    std::ranges::sort(steps);
    for (const std::int64_t lower : steps) change([&](FaultSpec& other) { other.at.step = lower; });
  }
  for (const int lower : below(fault.at.rank, 0)) change([&](FaultSpec& other) { other.at.rank = lower; });
  for (const int lower : below(fault.at.nth, 1)) change([&](FaultSpec& other) { other.at.nth = lower; });
  return list;
}

std::vector<Plan> each_fault(const Plan& plan, const std::function<std::vector<FaultSpec>(const FaultSpec&)>& simpler) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    for (FaultSpec& fault : simpler(plan.faults[i])) {
      plans.push_back(plan);
      plans.back().faults[i] = std::move(fault);
    }
  }
  return plans;
}

}  // namespace

std::vector<Plan> fewer_faults(const Plan& plan) {
  const FaultList& faults = plan.faults;
  std::vector<Plan> simpler;
  if (faults.empty()) return simpler;
  simpler.push_back(with(plan, {}));
  for (std::size_t part = faults.size() / 2; part > 1; part /= 2) {
    for (std::size_t begin = 0; begin < faults.size(); begin += part)
      simpler.push_back(with(plan, without(faults, begin, std::min(begin + part, faults.size()))));
  }
  if (faults.size() == 1) return simpler;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    FaultList rest = without(faults, i, i + 1);
    simpler.push_back(with(plan, rest));
    if (move_up(rest, faults[i])) simpler.push_back(with(plan, std::move(rest)));
  }
  return simpler;
}

std::vector<Plan> simpler_kinds(const Plan& plan) {
  return each_fault(plan, [](const FaultSpec& fault) {
    std::vector<FaultSpec> list;
    for (int level = 0; level < complexity(fault.kind); ++level) {
      for (const FaultKindInfo& info : fault_kinds()) {
        if (complexity(info.kind) != level) continue;
        if (level == 1 && !of_files(fault.kind)) continue;
        if (level == 2 && info.harm != info_of(fault.kind).harm) continue;
        list.push_back(as_kind(fault, info.kind));
      }
    }
    return list;
  });
}

std::vector<Plan> plainer_faults(const Plan& plan) { return each_fault(plan, plainer); }

std::vector<Plan> earlier_faults(const Plan& plan) {
  return each_fault(plan, [&plan](const FaultSpec& fault) { return earlier(fault, plan.job); });
}

std::vector<Plan> faults_that_must_fire(const Plan& plan) {
  std::vector<Plan> simpler;
  const auto loose = [](const FaultSpec& fault) { return fault.may_not_fire; };
  if (std::ranges::count_if(plan.faults, loose) > 1) {
    simpler.push_back(plan);
    for (FaultSpec& fault : simpler.back().faults) fault.may_not_fire = false;
  }
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    if (!loose(plan.faults[i])) continue;
    simpler.push_back(plan);
    simpler.back().faults[i].may_not_fire = false;
  }
  return simpler;
}

}  // namespace firedrill
