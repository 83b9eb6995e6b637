#include "engine/train/expert_layer.h"

#include <fmt/format.h>

#include "engine/comm/tree.h"
#include "engine/train/gradients.h"

namespace firedrill {

using Values = std::vector<Value>;

std::size_t ExpertLayer::segment(const Piece& piece, std::size_t expert, std::size_t tp) const {
  const auto lanes = static_cast<std::size_t>(context_.job.lanes.tp);
  const auto number = static_cast<std::size_t>(place_.experts.begin) + expert;
  return piece.lanes + number * lanes + static_cast<std::size_t>(place_.tp_lanes.begin) + tp;
}

// One list for each member of the ep group; from each come `parts` Values back.
Result<Value> ExpertLayer::trade(const Lists& to, std::size_t parts, std::string_view purpose) const {
  const Group& group = context_.groups.ep;
  Values packs;
  for (const Values& list : to) packs.push_back(Value::pack(list));
  FD_TRY(const Value received, context_.parts.collectives.all_to_all(group, packs, context_.call(purpose)));
  for (std::size_t member = 0; member < to.size(); ++member) {
    const Value& pack = received[member];
    if (!pack || !pack.is_pack() || pack.parts().size() != parts) {
      return Error{
          .code = Code::mismatch,
          .message = fmt::format("rank {} sent other than the rows of {} experts", group.ranks[member], parts)};
    }
  }
  return received;
}

Result<ExpertLayer::Lists> ExpertLayer::to_experts(Lists lists, std::string_view purpose) const {
  const auto members = static_cast<std::size_t>(context_.groups.ep.size());
  if (members == 1) return lists;
  Lists to(members);
  for (const Values& list : lists) {
    for (std::size_t i = 0; i < list.size(); ++i) to[i / experts_].push_back(list[i]);
  }
  FD_TRY(const Value received, trade(to, cps_ * experts_, purpose));
  Lists by_source;
  for (const Value& pack : received.parts()) {
    for (std::size_t c = 0; c < cps_; ++c) {
      const auto run = pack.parts().subspan(c * experts_, experts_);
      by_source.emplace_back(run.begin(), run.end());
    }
  }
  return by_source;
}

Result<ExpertLayer::Lists> ExpertLayer::to_lanes(Lists lists, std::string_view purpose) const {
  const auto members = static_cast<std::size_t>(context_.groups.ep.size());
  if (members == 1) return lists;
  const std::size_t count = experts_ * tps_;
  Lists to(members);
  for (std::size_t source = 0; source < lists.size(); ++source) {
    Values& list = to[source / cps_];
    list.insert(list.end(), lists[source].begin(), lists[source].end());
  }
  FD_TRY(const Value received, trade(to, cps_ * count, purpose));
  Lists by_lane(cps_);
  for (const Value& pack : received.parts()) {
    for (std::size_t c = 0; c < cps_; ++c) {
      const auto run = pack.parts().subspan(c * count, count);
      by_lane[c].insert(by_lane[c].end(), run.begin(), run.end());
    }
  }
  return by_lane;
}

Values ExpertLayer::of_tp(const Values& list, std::size_t tp) const {
  Values out;
  for (std::size_t i = tp; i < list.size(); i += tps_) out.push_back(list[i]);
  return out;
}

Result<Values> ExpertLayer::forward(const Piece& piece, const Unit& unit, const Values& h) const {
  FD_TRY(const Value router, context_.parameters.of(piece.router));
  std::vector<MoeModel::Routed> routed;
  Lists rows;
  for (const Value& of_lane : h) {
    FD_TRY(routed.emplace_back(), model_.route(router, of_lane, unit.mask));
    FD_TRY(const Value pack, model_.dispatch(of_lane, routed.back().places));
    rows.emplace_back(pack.parts().begin(), pack.parts().end());
  }
  FD_TRY(const Lists sources, to_experts(std::move(rows), "ep.dispatch"));
  Lists outputs;
  for (const Values& source : sources) {
    Values& out = outputs.emplace_back();
    for (std::size_t expert = 0; expert < experts_; ++expert) {
      for (std::size_t tp = 0; tp < tps_; ++tp) {
        FD_TRY(const Value parameters, context_.parameters.of(segment(piece, expert, tp)));
        FD_TRY(out.emplace_back(), model_.expert(parameters, source[expert]));
      }
    }
  }
  FD_TRY(const Lists back, to_lanes(std::move(outputs), "ep.combine"));
  Values partials;
  for (std::size_t c = 0; c < cps_; ++c) {
    for (std::size_t tp = 0; tp < tps_; ++tp) {
      FD_TRY(partials.emplace_back(),
             model_.combine(routed[c].places, routed[c].gates, Value::pack(of_tp(back[c], tp))));
    }
  }
  return partials;
}

// The members of an ep group lie in the grid of (dp, cp), cp fastest.
Status ExpertLayer::add_gradient(const Unit& unit, std::size_t source, std::size_t segment, Value gradient,
                                 GradientSums& sums) const {
  const std::size_t block = static_cast<std::size_t>(place_.expert_cp_lanes.count()) / cps_;
  const std::size_t member = source / cps_;
  const std::size_t lane = member / block * static_cast<std::size_t>(place_.dp_lanes.count()) + unit.lane;
  return sums.add(lane, segment, member % block * cps_ + source % cps_, std::move(gradient));
}

Result<Values> ExpertLayer::backward(const Piece& piece, const Unit& unit, const Values& h, const Values& d_out,
                                     GradientSums& sums) const {
  FD_TRY(const Value router, context_.parameters.of(piece.router));
  Values places;
  Lists rows(cps_);
  for (std::size_t c = 0; c < cps_; ++c) {
    FD_TRY(const MoeModel::Routed routed, model_.route(router, h[c], unit.mask));
    FD_TRY(const Value x, model_.dispatch(h[c], routed.places));
    FD_TRY(const Value d, model_.dispatch(d_out[c], routed.places));
    for (std::size_t expert = 0; expert < x.parts().size(); ++expert) {
      rows[c].push_back(Value::pack({x[expert], model_.gates_of(routed.gates, static_cast<int>(expert)), d[expert]}));
    }
    places.push_back(routed.places);
  }
  FD_TRY(const Lists sources, to_experts(std::move(rows), "ep.dispatch.backward"));
  Lists gradients;  // packs of d x and d gates
  for (std::size_t source = 0; source < sources.size(); ++source) {
    Values& list = gradients.emplace_back();
    for (std::size_t expert = 0; expert < experts_; ++expert) {
      const Value& in = sources[source][expert];
      if (!in || !in.is_pack() || in.parts().size() != 3) {
        return Error{.code = Code::mismatch, .message = "rows came for an expert without gates and gradients"};
      }
      for (std::size_t tp = 0; tp < tps_; ++tp) {
        const std::size_t of = segment(piece, expert, tp);
        FD_TRY(const Value parameters, context_.parameters.of(of));
        FD_TRY(const Value pack, model_.expert_backward(parameters, in[0], in[1], in[2]));
        FD_TRY_VOID(add_gradient(unit, source, of, pack[2], sums));
        list.push_back(Value::pack({pack[0], pack[1]}));
      }
    }
  }
  FD_TRY(const Lists back, to_lanes(std::move(gradients), "ep.combine.backward"));
  return through_router(piece, unit, h, places, back, sums);
}

// What the experts say of their rows and gates, back to the tokens and through the router.
Result<Values> ExpertLayer::through_router(const Piece& piece, const Unit& unit, const Values& h, const Values& places,
                                           const Lists& back, GradientSums& sums) const {
  Values d_h;
  Values d_gates;
  for (std::size_t c = 0; c < cps_; ++c) {
    for (std::size_t tp = 0; tp < tps_; ++tp) {
      Values d_rows;
      Values runs;
      for (const Value& pack : of_tp(back[c], tp)) {
        if (!pack || !pack.is_pack() || pack.parts().size() != 2) {
          return Error{.code = Code::mismatch, .message = "an expert sent other than the gradients of rows and gates"};
        }
        d_rows.push_back(pack[0]);
        runs.push_back(pack[1]);
      }
      FD_TRY(d_h.emplace_back(), model_.combine(places[c], Value(), Value::pack(d_rows)));
      FD_TRY(d_gates.emplace_back(), context_.parts.compute.run(concat_kernel, {}, runs));
    }
  }
  FD_TRY(Values d_gates_all, exchange_.reduce_tp(std::move(d_gates), ReduceOp::sum, "tp.gates"));
  FD_TRY(const Value router, context_.parameters.of(piece.router));
  for (std::size_t c = 0; c < cps_; ++c) {
    FD_TRY(const Value pack, model_.route_backward(router, h[c], unit.mask, std::move(d_gates_all[c]), unit.factor));
    FD_TRY_VOID(sums.add(unit.lane, piece.router, c, pack[1]));
    if (place_.tp_lanes.begin != 0) continue;  // counted once: with the first tp lane's share
    Value inputs[] = {std::move(d_h[c * tps_]), pack[0]};
    FD_TRY(d_h[c * tps_], context_.parts.compute.run(add_kernel, {}, inputs));
  }
  return d_h;
}

}  // namespace firedrill
