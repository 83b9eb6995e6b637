#include "engine/train/lane_network.h"

#include "engine/train/gradients.h"

namespace firedrill {

LaneNetwork::LaneNetwork(const NetworkContext& context)
    : context_(context),
      place_(context.place),
      model_(context.job, context.model, context.parts.compute),
      exchange_(context_, model_),
      experts_(context_, exchange_) {}

// Calls run(chunk) for each own chunk.
template <class Run>
Result<LaneNetwork::ByLane> LaneNetwork::each_chunk(Run run) const {
  ByLane out;
  for (int cp = place_.cp_lanes.begin; cp < place_.cp_lanes.end; ++cp) {
    for (int tp = place_.chunks.begin; tp < place_.chunks.end; ++tp) {
      FD_TRY(out.emplace_back(), run(LanePlace{.cp = cp, .tp = tp}));
    }
  }
  return out;
}

template <class Run>
Result<LaneNetwork::ByLane> LaneNetwork::each_lane(Run run) const {
  ByLane out;
  for (int cp = place_.cp_lanes.begin; cp < place_.cp_lanes.end; ++cp) {
    for (int tp = place_.tp_lanes.begin; tp < place_.tp_lanes.end; ++tp) {
      FD_TRY(out.emplace_back(), run(LanePlace{.cp = cp, .tp = tp}));
    }
  }
  return out;
}

Result<Value> LaneNetwork::forward(const Piece& piece, const Unit& unit, const Value& input) {
  if (piece.kind == PieceKind::embed) return embed(piece, unit);
  FD_TRY(const ByLane h, normed(piece, input));
  FD_TRY(ByLane partials, partial_sums(piece, unit, h));
  FD_TRY(ByLane sums, exchange_.sum_to_chunks(std::move(partials)));
  const auto out_at = [&](LanePlace at) {
    const std::size_t i = chunk_index(at);
    return model_.residual(at, piece, input[i], std::move(sums[i]), unit.random);
  };
  FD_TRY(const ByLane out, each_chunk(out_at));
  return Value::pack(out);
}

Result<Value> LaneNetwork::embed(const Piece& piece, const Unit& unit) {
  const auto partials_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    return model_.tokens(at, parameters, unit.tokens);
  };
  FD_TRY(ByLane partials, each_lane(partials_at));
  FD_TRY(ByLane sums, exchange_.sum_to_chunks(std::move(partials)));
  FD_TRY(const Value parameters, shared(piece));
  const auto out_at = [&](LanePlace at) {
    return model_.positions(at, piece, parameters, std::move(sums[chunk_index(at)]), unit.random);
  };
  FD_TRY(const ByLane out, each_chunk(out_at));
  return Value::pack(out);
}

Result<Value> LaneNetwork::embed_backward(const Piece& piece, const Unit& unit, const Value& gradient,
                                          GradientSums& sums) {
  FD_TRY(const Value parameters, shared(piece));
  const auto d_sums_at = [&](LanePlace at) -> Result<Value> {
    const std::size_t i = chunk_index(at);
    FD_TRY(const Value pack, model_.positions_backward(at, piece, parameters, gradient[i], unit.random));
    FD_TRY_VOID(sums.add(unit.lane, piece.shared, i, pack[1]));
    return pack[0];
  };
  FD_TRY(ByLane d_sums, each_chunk(d_sums_at));
  FD_TRY(const ByLane whole, exchange_.join_chunks(std::move(d_sums)));
  const auto weights_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value weights, of_lane(piece, at.tp));
    FD_TRY(Value d_weights, model_.tokens_backward(at, weights, unit.tokens, whole[cp_index(at)]));
    FD_TRY_VOID(sums.add(unit.lane, piece.lanes + static_cast<std::size_t>(at.tp), cp_index(at), std::move(d_weights)));
    return Value();
  };
  FD_TRY_VOID(each_lane(weights_at));
  return Value();
}

Result<LaneNetwork::ByLane> LaneNetwork::normed(const Piece& piece, const Value& input) {
  FD_TRY(const Value parameters, shared(piece));
  const auto norm_at = [&](LanePlace at) { return model_.norm(parameters, input[chunk_index(at)]); };
  FD_TRY(ByLane chunks, each_chunk(norm_at));
  return exchange_.join_chunks(std::move(chunks));
}

Result<LaneNetwork::Queries> LaneNetwork::queries(const Piece& piece, const ByLane& h) {
  Queries queries;
  const auto kv_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    FD_TRY(const Value pack, model_.qkv(at, parameters, h[cp_index(at)]));
    queries.q.push_back(pack[0]);
    return pack[1];
  };
  FD_TRY(const ByLane kv, each_lane(kv_at));
  FD_TRY(queries.all_kv, exchange_.gather_keys(kv));
  return queries;
}

Result<LaneNetwork::ByLane> LaneNetwork::partial_sums(const Piece& piece, const Unit& unit, const ByLane& h) {
  if (piece.kind == PieceKind::moe) return experts_.forward(piece, unit, h);
  if (piece.kind == PieceKind::mlp) {
    return each_lane([&](LanePlace at) -> Result<Value> {
      FD_TRY(const Value parameters, of_lane(piece, at.tp));
      return model_.mlp(parameters, h[cp_index(at)]);
    });
  }
  FD_TRY(const Queries queries, this->queries(piece, h));
  return each_lane([&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    const auto tp = static_cast<std::size_t>(at.tp - place_.tp_lanes.begin);
    return model_.attend(at, parameters, queries.q[lane_index(at)], queries.all_kv[tp]);
  });
}

Result<Value> LaneNetwork::backward(const Piece& piece, const Unit& unit, const Value& input, Value gradient,
                                    GradientSums& sums) {
  if (piece.kind == PieceKind::embed) return embed_backward(piece, unit, gradient, sums);
  FD_TRY(const ByLane h, normed(piece, input));
  const auto d_sums_at = [&](LanePlace at) {
    return model_.residual_backward(at, piece, gradient[chunk_index(at)], unit.random);
  };
  FD_TRY(ByLane d_sums, each_chunk(d_sums_at));
  FD_TRY(const ByLane d_whole, exchange_.join_chunks(std::move(d_sums)));
  FD_TRY(ByLane d_h, partial_backward(piece, unit, h, d_whole, sums));
  return norm_backward(piece, unit, input, std::move(d_h), gradient, sums);
}

Result<LaneNetwork::ByLane> LaneNetwork::partial_backward(const Piece& piece, const Unit& unit, const ByLane& h,
                                                          const ByLane& gradients, GradientSums& sums) {
  if (piece.kind == PieceKind::attention) return attention_backward(piece, unit, h, gradients, sums);
  if (piece.kind == PieceKind::moe) return experts_.backward(piece, unit, h, gradients, sums);
  return each_lane([&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    FD_TRY(const Value pack, model_.mlp_backward(parameters, h[cp_index(at)], gradients[cp_index(at)]));
    FD_TRY_VOID(sums.add(unit.lane, piece.lanes + static_cast<std::size_t>(at.tp), cp_index(at), pack[1]));
    return pack[0];
  });
}

Result<LaneNetwork::ByLane> LaneNetwork::attention_backward(const Piece& piece, const Unit& unit, const ByLane& h,
                                                            const ByLane& gradients, GradientSums& sums) {
  FD_TRY(const Queries queries, this->queries(piece, h));
  ByLane d_q;
  ByLane d_parameters;
  const auto d_all_kv_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    const auto tp = static_cast<std::size_t>(at.tp - place_.tp_lanes.begin);
    FD_TRY(const Value pack, model_.attend_backward(at, parameters, queries.q[lane_index(at)], queries.all_kv[tp],
                                                    gradients[cp_index(at)]));
    d_q.push_back(pack[0]);
    d_parameters.push_back(pack[2]);
    return pack[1];
  };
  FD_TRY(const ByLane d_all_kv, each_lane(d_all_kv_at));
  FD_TRY(ByLane d_kv, exchange_.reduce_keys(d_all_kv));
  return each_lane([&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(piece, at.tp));
    const std::size_t i = lane_index(at);
    FD_TRY(const Value pack, model_.qkv_backward(at, parameters, h[cp_index(at)], std::move(d_q[i]), std::move(d_kv[i]),
                                                 std::move(d_parameters[i])));
    FD_TRY_VOID(sums.add(unit.lane, piece.lanes + static_cast<std::size_t>(at.tp), cp_index(at), pack[1]));
    return pack[0];
  });
}

Result<Value> LaneNetwork::norm_backward(const Piece& piece, const Unit& unit, const Value& input, ByLane d_h,
                                         const Value& residual, GradientSums& sums) {
  FD_TRY(ByLane d_chunks, exchange_.sum_to_chunks(std::move(d_h)));
  FD_TRY(const Value parameters, shared(piece));
  const auto out_at = [&](LanePlace at) -> Result<Value> {
    const std::size_t i = chunk_index(at);
    FD_TRY(const Value pack,
           model_.norm_backward(parameters, input[i], std::move(d_chunks[i]), residual ? residual[i] : Value()));
    FD_TRY_VOID(sums.add(unit.lane, piece.shared, i, pack[1]));
    return pack[0];
  };
  FD_TRY(const ByLane out, each_chunk(out_at));
  return Value::pack(out);
}

Result<Value> LaneNetwork::loss(const Piece& head, const Unit& unit, const Value& input, GradientSums& sums) {
  FD_TRY(const ByLane h, normed(head, input));
  const auto maxima_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(head, at.tp));
    return model_.head_max(parameters, h[cp_index(at)]);
  };
  FD_TRY(ByLane maxima, each_lane(maxima_at));
  FD_TRY(const ByLane max, exchange_.reduce_tp(std::move(maxima), ReduceOp::max, "tp.max"));
  const auto partials_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(head, at.tp));
    return model_.head_sums(at, parameters, h[cp_index(at)], max[cp_index(at)], unit.tokens);
  };
  FD_TRY(ByLane partials, each_lane(partials_at));
  FD_TRY(const ByLane total, exchange_.reduce_tp(std::move(partials), ReduceOp::sum, "tp.exp"));
  ByLane known;
  for (int cp = place_.cp_lanes.begin; cp < place_.cp_lanes.end; ++cp) {
    const std::size_t c = cp_index({.cp = cp});
    FD_TRY(Value loss, model_.head_loss(cp, max[c], total[c], unit.targets()));
    FD_TRY_VOID(sums.add_loss(unit.lane, c, std::move(loss)));
    known.push_back(Value::pack({max[c], total[c]}));
  }
  return Value::pack(known);
}

Result<Value> LaneNetwork::loss_backward(const Piece& head, const Unit& unit, const Value& input, const Value& known,
                                         GradientSums& sums) {
  FD_TRY(const ByLane h, normed(head, input));
  const auto d_h_at = [&](LanePlace at) -> Result<Value> {
    FD_TRY(const Value parameters, of_lane(head, at.tp));
    const Value& of_lane = known[cp_index(at)];
    FD_TRY(const Value pack,
           model_.head_backward(at, parameters, h[cp_index(at)], {.max = of_lane[0], .sums = of_lane[1]},
                                unit.targets(), unit.factor));
    const std::size_t segment = head.lanes + static_cast<std::size_t>(at.tp);
    FD_TRY_VOID(sums.add(unit.lane, context_.model.accumulator(head, segment), cp_index(at), pack[1]));
    return pack[0];
  };
  FD_TRY(ByLane d_h, each_lane(d_h_at));
  return norm_backward(head, unit, input, std::move(d_h), Value(), sums);
}

}  // namespace firedrill
