// ExpertLayer: a mixture of experts on one rank: its tokens go to the ranks of its ep group that hold the experts, and
// what the experts make of them comes back.
//
// A source lane is a (dp, cp) lane with all its tokens; every tp rank routes them alike, and each expert's hidden units
// lie on the tp lanes like those of an MLP. An expert runs once for each source lane on all places that it has for it,
// taken or not, so neither who runs it nor how many tokens came changes a shape. All ranks of an ep group run their
// units in lockstep and join every exchange. Errors: those of the collectives; mismatch (a peer sent something else).
#pragma once

#include <string_view>
#include <vector>

#include "engine/model/moe_model.h"
#include "engine/train/lane_exchange.h"
#include "engine/train/network.h"

namespace firedrill {

class ExpertLayer {
 public:
  ExpertLayer(const NetworkContext& context, const LaneExchange& exchange)
      : context_(context),
        place_(context.place),
        exchange_(exchange),
        model_(context.job, context.parts.compute),
        cps_(static_cast<std::size_t>(place_.cp_lanes.count())),
        tps_(static_cast<std::size_t>(place_.tp_lanes.count())),
        experts_(static_cast<std::size_t>(place_.experts.count())) {}

  // `h`: the normed input by own cp lane. Result: partial sums by own (cp, tp) lane.
  Result<std::vector<Value>> forward(const Piece& piece, const Unit& unit, const std::vector<Value>& h) const;
  // `d_out`: of the sum over tp lanes, by own cp lane. Result: the gradient of h by own (cp, tp) lane, to be added.
  Result<std::vector<Value>> backward(const Piece& piece, const Unit& unit, const std::vector<Value>& h,
                                      const std::vector<Value>& d_out, GradientSums& sums) const;

 private:
  // By source lane, a list by expert and, within, by own tp lane where that makes a difference.
  using Lists = std::vector<std::vector<Value>>;

  // From lists by own cp lane over all experts to lists by source lane of the ep group over own experts, and back.
  Result<Lists> to_experts(Lists lists, std::string_view purpose) const;
  Result<Lists> to_lanes(Lists lists, std::string_view purpose) const;
  Result<Value> trade(const Lists& to, std::size_t parts, std::string_view purpose) const;

  // The parameters' segment of own expert `expert` and own tp lane `tp`.
  std::size_t segment(const Piece& piece, std::size_t expert, std::size_t tp) const;
  Status add_gradient(const Unit& unit, std::size_t source, std::size_t segment, Value gradient,
                      GradientSums& sums) const;
  Result<std::vector<Value>> through_router(const Piece& piece, const Unit& unit, const std::vector<Value>& h,
                                            const std::vector<Value>& places, const Lists& back,
                                            GradientSums& sums) const;
  // What all experts gave for own tp lane `tp`.
  std::vector<Value> of_tp(const std::vector<Value>& list, std::size_t tp) const;

  const NetworkContext& context_;
  const RankPlace& place_;
  const LaneExchange& exchange_;
  MoeModel model_;
  std::size_t cps_;
  std::size_t tps_;
  std::size_t experts_;  // own
};

}  // namespace firedrill
