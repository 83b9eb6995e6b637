// LaneNetwork: the pieces of a model that is cut into tp and cp lanes, lane by lane, with the exchanges between them.
#pragma once

#include <vector>

#include "engine/model/lane_model.h"
#include "engine/train/expert_layer.h"
#include "engine/train/lane_exchange.h"
#include "engine/train/network.h"

namespace firedrill {

class LaneNetwork final : public Network {
 public:
  explicit LaneNetwork(const NetworkContext& context);

  Result<Value> forward(const Piece& piece, const Unit& unit, const Value& input) override;
  Result<Value> backward(const Piece& piece, const Unit& unit, const Value& input, Value gradient,
                         GradientSums& sums) override;
  Result<Value> loss(const Piece& head, const Unit& unit, const Value& input, GradientSums& sums) override;
  Result<Value> loss_backward(const Piece& head, const Unit& unit, const Value& input, const Value& known,
                              GradientSums& sums) override;

 private:
  // By own cp lane; by own (cp lane, tp lane); by own (cp lane, chunk): the second index runs fastest.
  using ByLane = std::vector<Value>;
  struct Queries {
    ByLane q;       // by (cp, tp)
    ByLane all_kv;  // by tp: a pack with the keys and values of all cp lanes
  };

  template <class Run>
  Result<ByLane> each_chunk(Run run) const;
  template <class Run>
  Result<ByLane> each_lane(Run run) const;

  Result<Value> embed(const Piece& piece, const Unit& unit);
  Result<Value> embed_backward(const Piece& piece, const Unit& unit, const Value& gradient, GradientSums& sums);
  Result<ByLane> normed(const Piece& piece, const Value& input);
  Result<Queries> queries(const Piece& piece, const ByLane& h);
  Result<ByLane> partial_sums(const Piece& piece, const Unit& unit, const ByLane& h);
  // From the gradient of the sum over tp lanes to that of h, by (cp, tp).
  Result<ByLane> partial_backward(const Piece& piece, const Unit& unit, const ByLane& h, const ByLane& gradients,
                                  GradientSums& sums);
  Result<ByLane> attention_backward(const Piece& piece, const Unit& unit, const ByLane& h, const ByLane& gradients,
                                    GradientSums& sums);
  // Through the norm in front of a piece; `residual` is what the input gets besides.
  Result<Value> norm_backward(const Piece& piece, const Unit& unit, const Value& input, ByLane d_h,
                              const Value& residual, GradientSums& sums);

  Result<Value> shared(const Piece& piece) const { return context_.parameters.of(piece.shared); }
  Result<Value> of_lane(const Piece& piece, int tp) const {
    return context_.parameters.of(piece.lanes + static_cast<std::size_t>(tp));
  }
  // Indices into the lists above, from those of the lanes themselves.
  std::size_t cp_index(LanePlace at) const { return static_cast<std::size_t>(at.cp - place_.cp_lanes.begin); }
  std::size_t lane_index(LanePlace at) const {
    return cp_index(at) * static_cast<std::size_t>(place_.tp_lanes.count()) +
           static_cast<std::size_t>(at.tp - place_.tp_lanes.begin);
  }
  std::size_t chunk_index(LanePlace at) const {
    return cp_index(at) * static_cast<std::size_t>(place_.chunks.count()) +
           static_cast<std::size_t>(at.tp - place_.chunks.begin);
  }

  NetworkContext context_;
  const RankPlace& place_;
  LaneModel model_;
  LaneExchange exchange_;
  ExpertLayer experts_;
};

}  // namespace firedrill
