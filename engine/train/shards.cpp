#include "engine/train/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/comm/tree.h"
#include "engine/model/mixed.h"
#include "engine/train/halves.h"

namespace firedrill {

Result<Value> cut_shard(Compute& compute, const Value& whole, const Range& range) {
  return run_kernel(compute, slice_kernel, SliceScalars{.begin = range.begin, .count = range.count()}, {whole});
}

namespace {

Result<std::vector<Value>> join_over(const Group& group, const NetworkContext& context, std::span<const Value> shards,
                                     std::string_view purpose) {
  if (shards.empty()) return std::vector<Value>();
  FD_TRY(const Value all, context.parts.collectives.all_gather(group, Value::pack(shards), context.call(purpose)));
  std::vector<Value> wholes;
  wholes.reserve(shards.size());
  std::vector<Value> runs(static_cast<std::size_t>(group.size()));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t member = 0; member < runs.size(); ++member) {
      const Value& told = all[member];
      if (!told || !told.is_pack() || told.parts().size() != shards.size()) {
        return Error{.code = Code::mismatch,
                     .message = fmt::format("rank {} sent other than {} shards", group.ranks[member], shards.size())};
      }
      runs[member] = told[i];
    }
    FD_TRY(wholes.emplace_back(), context.parts.compute.run(concat_kernel, {}, runs));
  }
  return wholes;
}

}  // namespace

Result<std::vector<Value>> join_shards(const NetworkContext& context, std::span<const std::size_t> segments,
                                       std::span<const Value> shards, std::string_view purpose) {
  const auto expert = [&](std::size_t segment) { return context.model.segments()[segment].expert >= 0; };
  if (std::ranges::none_of(segments, expert)) return join_over(context.groups.dp, context, shards, purpose);
  std::vector<Value> of_all;
  std::vector<Value> of_experts;
  for (std::size_t i = 0; i < shards.size(); ++i) (expert(segments[i]) ? of_experts : of_all).push_back(shards[i]);
  FD_TRY(of_all, join_over(context.groups.dp, context, of_all, purpose));
  FD_TRY(of_experts, join_over(context.groups.expert_dp, context, of_experts, purpose));
  std::vector<Value> wholes;
  std::size_t next[] = {0, 0};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    wholes.push_back(std::move(expert(segments[i]) ? of_experts[next[1]++] : of_all[next[0]++]));
  }
  return wholes;
}

Result<std::vector<Value>> join_segments(const NetworkContext& context, std::span<const std::size_t> segments,
                                         std::span<const Value> shards, std::string_view purpose) {
  FD_TRY(std::vector<Value> wholes, join_shards(context, segments, shards, purpose));
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const Segment& segment = context.model.segments()[segments[i]];
    if (wholes[i].count() == segment.count) continue;
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the shards of {} are {} elements together, and it has {}", segment.name,
                                        wholes[i].count(), segment.count)};
  }
  return wholes;
}

Parameters::Parameters(const Job& job, const Holdings& holdings, const std::vector<OptimizerState>& segments)
    : holdings_(holdings),
      segments_(segments),
      dtype_(dtype_of(job.precision.parameters)),
      derived_(!holdings.sixteen_bits) {}

Status Parameters::derive(const NetworkContext& context) {
  if (!holdings_.sixteen_bits) return {};
  derived_ = true;
  rounded_.assign(segments_.size(), Value());
  std::vector<Value> all;
  for (const std::size_t segment : holdings_.segments) {
    FD_TRY(all.emplace_back(), run_kernel(context.parts.compute, narrow_kernel, static_cast<std::uint64_t>(dtype_),
                                          {segments_[segment].parameters}));
  }
  if (holdings_.shards_masters() && !holdings_.shards_parameters()) {
    FD_TRY(all, join_segments(context, holdings_.segments, all, "parameters.updated"));
  }
  for (std::size_t i = 0; i < all.size(); ++i) rounded_[holdings_.segments[i]] = std::move(all[i]);
  return {};
}

Result<Value> Parameters::of(std::size_t segment) const {
  if (!holdings_.shards_parameters()) return held(segment);
  const auto found = gathered_.find(segment);
  FD_CHECK(found != gathered_.end(), "segment {} is read but not gathered", segment);
  return found->second;
}

Status Parameters::gather(const NetworkContext& context, const Piece& piece) {
  if (!holdings_.shards_parameters()) return {};
  std::vector<std::size_t> wanted;
  std::vector<Value> shards;
  for (const std::size_t segment : holdings_.segments_of(piece)) {
    if (gathered_.contains(segment)) continue;
    wanted.push_back(segment);
    shards.push_back(held(segment));
  }
  if (wanted.empty()) return {};
  const std::string purpose = "parameters." + context.model.segments()[wanted.front()].name;
  FD_TRY(std::vector<Value> wholes, join_segments(context, wanted, shards, purpose));
  for (std::size_t i = 0; i < wanted.size(); ++i) gathered_[wanted[i]] = std::move(wholes[i]);
  return {};
}

void Parameters::release(const Piece& piece) {
  if (gathered_.empty()) return;
  for (const std::size_t segment : holdings_.segments_of(piece)) gathered_.erase(segment);
}

}  // namespace firedrill
