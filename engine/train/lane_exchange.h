// LaneExchange: what moves between the tp and cp lanes of one micro-batch, and the trees over them. Lists are by own cp
// lane and, within, by own tp lane or own chunk.
//
// Where one rank owns all lanes of a kind nothing is exchanged and the same trees are added in place.
// Errors: those of the collectives; mismatch (a peer sent something else).
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/lane_model.h"
#include "engine/train/network.h"

namespace firedrill {

class LaneExchange {
 public:
  LaneExchange(const NetworkContext& context, const LaneModel& model) : context_(context), model_(model) {}

  // The whole of each own cp lane, from the chunks that the tp ranks have.
  Result<std::vector<Value>> join_chunks(std::vector<Value> chunks) const;
  // The sum over all tp lanes, by own chunk, from the partial sums of the own (cp, tp) lanes.
  Result<std::vector<Value>> sum_to_chunks(std::vector<Value> partials) const;
  // A tree over all tp lanes, by own cp lane.
  Result<std::vector<Value>> reduce_tp(std::vector<Value> partials, ReduceOp op, std::string_view purpose) const;

  // By own tp lane: a pack of the keys and values of all cp lanes.
  Result<std::vector<Value>> gather_keys(const std::vector<Value>& kv) const;
  // Backwards: by own (cp, tp) lane the sum over the queries of all cp lanes. `gradients`: by own (cp, tp) lane of the
  // queries a pack by cp lane of the keys.
  Result<std::vector<Value>> reduce_keys(const std::vector<Value>& gradients) const;

 private:
  // Calls for one purpose follow each other by the hundred, all of one shape. They are numbered in turn, anew in each
  // step, so that a member that leaves one out disagrees with its peers at the next one, and not when it runs out of
  // them.
  struct Numbered {
    std::string purpose;
    std::array<std::string, 8> names;
    std::size_t calls = 0;
  };
  Call call(std::string_view purpose) const;

  std::size_t cps() const { return static_cast<std::size_t>(context_.place.cp_lanes.count()); }
  std::size_t tps() const { return static_cast<std::size_t>(context_.place.tp_lanes.count()); }
  bool owns_all_tp() const { return context_.groups.tp.size() == 1; }
  bool owns_all_cp() const { return context_.groups.cp.size() == 1; }
  Result<Value> tree(std::vector<Value> lanes, ReduceOp op) const;
  Result<std::vector<Value>> scatter_chunks(const std::vector<Value>& partials) const;

  const NetworkContext& context_;
  const LaneModel& model_;
  mutable std::int64_t step_ = 0;          // that they are numbered in
  mutable std::deque<Numbered> numbered_;  // few: found by walking; a call's purpose points into it
};

// The one tree over `lanes`, all of them here.
Result<Value> add_tree(Compute& compute, std::vector<Value> lanes, ReduceOp op);
// Whether what came of a reduction has parts, types and sizes of what this member gave: the members can have agreed
// about something else. Else mismatch.
Status check_like(const Value& reduced, const Value& given, std::string_view purpose);

}  // namespace firedrill
