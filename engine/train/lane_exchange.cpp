#include "engine/train/lane_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/comm/tree.h"

namespace firedrill {
namespace {

using Values = std::vector<Value>;

// Part `i` of what member `member` sent.
Result<Value> part_of(const Value& received, std::size_t member, std::size_t i) {
  const Value& pack = received[member];
  if (!pack || !pack.is_pack() || i >= pack.parts().size()) {
    return Error{.code = Code::mismatch, .message = fmt::format("member {} of the group sent too little", member)};
  }
  return pack[i];
}

bool are_like(const Value& reduced, const Value& given) {
  if (!reduced || reduced.dtype() != given.dtype()) return false;
  return given.is_pack() ? std::ranges::equal(reduced.parts(), given.parts(), are_like)
                         : reduced.count() == given.count();
}

}  // namespace

Status check_like(const Value& reduced, const Value& given, std::string_view purpose) {
  if (are_like(reduced, given)) return {};
  return Error{.code = Code::mismatch,
               .message = fmt::format("the result of {} has other types or sizes than what was given", purpose)};
}

Result<Value> add_tree(Compute& compute, std::vector<Value> lanes, ReduceOp op) {
  if (lanes.size() == 1) return std::move(lanes.front());
  TreeReduction reduction(compute, op, static_cast<int>(lanes.size()));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    FD_TRY_VOID(reduction.add({.level = 0, .index = static_cast<int>(i)}, std::move(lanes[i])));
  }
  return reduction.take(0);
}

Call LaneExchange::call(std::string_view purpose) const {
  if (std::exchange(step_, context_.parts.position.step) != step_) {
    for (Numbered& known : numbered_) known.calls = 0;
  }
  for (Numbered& known : numbered_) {
    if (known.purpose == purpose) return context_.call(known.names[known.calls++ % known.names.size()]);
  }
  Numbered& fresh = numbered_.emplace_back(Numbered{.purpose = std::string(purpose), .names = {}});
  for (std::size_t i = 0; i < fresh.names.size(); ++i) fresh.names[i] = fmt::format("{}.{}", purpose, i);
  return context_.call(fresh.names[fresh.calls++]);
}

Result<Value> LaneExchange::tree(Values lanes, ReduceOp op) const {
  return add_tree(context_.parts.compute, std::move(lanes), op);
}

Result<Values> LaneExchange::join_chunks(Values chunks) const {
  const std::size_t own = static_cast<std::size_t>(context_.place.chunks.count());
  Values whole;
  if (own == static_cast<std::size_t>(model_.lanes().tp)) {
    for (std::size_t c = 0; c < cps(); ++c) {
      Values of_lane(chunks.begin() + static_cast<std::ptrdiff_t>(c * own),
                     chunks.begin() + static_cast<std::ptrdiff_t>((c + 1) * own));
      FD_TRY(whole.emplace_back(), model_.join(std::move(of_lane)));
    }
    return whole;
  }
  FD_TRY(const Value all,
         context_.parts.collectives.all_gather(context_.groups.tp, Value::pack(chunks), call("tp.chunks")));
  for (std::size_t c = 0; c < cps(); ++c) {
    Values of_lane;
    for (std::size_t member = 0; member < static_cast<std::size_t>(context_.groups.tp.size()); ++member) {
      for (std::size_t t = 0; t < own; ++t) {
        FD_TRY(of_lane.emplace_back(), part_of(all, member, c * own + t));
      }
    }
    FD_TRY(whole.emplace_back(), model_.join(std::move(of_lane)));
  }
  return whole;
}

Result<Values> LaneExchange::reduce_tp(Values partials, ReduceOp op, std::string_view purpose) const {
  Values sums;
  if (owns_all_tp()) {
    for (std::size_t c = 0; c < cps(); ++c) {
      Values lanes;
      for (std::size_t k = 0; k < tps(); ++k) lanes.push_back(std::move(partials[c * tps() + k]));
      FD_TRY(sums.emplace_back(), tree(std::move(lanes), op));
    }
    return sums;
  }
  Values packs;  // one for each own tp lane, over the cp lanes
  for (std::size_t k = 0; k < tps(); ++k) {
    Values of_lane;
    for (std::size_t c = 0; c < cps(); ++c) of_lane.push_back(std::move(partials[c * tps() + k]));
    packs.push_back(Value::pack(of_lane));
  }
  FD_TRY(const Value reduced, context_.parts.collectives.all_reduce(context_.groups.tp, packs, op, call(purpose)));
  FD_TRY_VOID(check_like(reduced, packs.front(), purpose));
  sums.assign(reduced.parts().begin(), reduced.parts().end());
  return sums;
}

Result<Values> LaneExchange::sum_to_chunks(Values partials) const {
  const LaneRange chunks = context_.place.chunks;
  if (!owns_all_tp() && chunks.count() < model_.lanes().tp) return scatter_chunks(partials);
  FD_TRY(const Values sums, reduce_tp(std::move(partials), ReduceOp::sum, "tp.sum"));
  Values out;
  for (std::size_t c = 0; c < cps(); ++c) {
    for (int chunk = chunks.begin; chunk < chunks.end; ++chunk) {
      FD_TRY(out.emplace_back(), model_.take(sums[c], chunk));
    }
  }
  return out;
}

// Each member gets all lanes' partial sums of its chunks, and adds the tree.
Result<Values> LaneExchange::scatter_chunks(const Values& partials) const {
  const Group& group = context_.groups.tp;
  Values to;
  for (const LaneRange chunks : group.lanes) {
    Values parts;
    for (std::size_t c = 0; c < cps(); ++c) {
      for (int chunk = chunks.begin; chunk < chunks.end; ++chunk) {
        for (std::size_t k = 0; k < tps(); ++k) {
          FD_TRY(parts.emplace_back(), model_.take(partials[c * tps() + k], chunk));
        }
      }
    }
    to.push_back(Value::pack(parts));
  }
  FD_TRY(const Value received, context_.parts.collectives.all_to_all(group, to, call("tp.sum_to_chunks")));
  Values out;
  const std::size_t count = cps() * static_cast<std::size_t>(context_.place.chunks.count());
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    Values lanes;
    for (std::size_t member = 0; member < static_cast<std::size_t>(group.size()); ++member) {
      for (std::size_t k = 0; k < tps(); ++k) {
        FD_TRY(lanes.emplace_back(), part_of(received, member, chunk * tps() + k));
      }
    }
    FD_TRY(out.emplace_back(), tree(std::move(lanes), ReduceOp::sum));
  }
  return out;
}

Result<Values> LaneExchange::gather_keys(const Values& kv) const {
  Values by_tp;
  if (owns_all_cp()) {
    for (std::size_t k = 0; k < tps(); ++k) {
      Values of_lane;
      for (std::size_t c = 0; c < cps(); ++c) of_lane.push_back(kv[c * tps() + k]);
      by_tp.push_back(Value::pack(of_lane));
    }
    return by_tp;
  }
  const Group& group = context_.groups.cp;
  FD_TRY(const Value all, context_.parts.collectives.all_gather(group, Value::pack(kv), call("cp.keys")));
  for (std::size_t k = 0; k < tps(); ++k) {
    Values of_lane;
    for (std::size_t member = 0; member < static_cast<std::size_t>(group.size()); ++member) {
      for (std::size_t c = 0; c < cps(); ++c) {
        FD_TRY(of_lane.emplace_back(), part_of(all, member, c * tps() + k));
      }
    }
    by_tp.push_back(Value::pack(of_lane));
  }
  return by_tp;
}

Result<Values> LaneExchange::reduce_keys(const Values& gradients) const {
  Values out;
  if (owns_all_cp()) {
    for (std::size_t key_lane = 0; key_lane < cps(); ++key_lane) {
      for (std::size_t k = 0; k < tps(); ++k) {
        Values lanes;
        for (std::size_t c = 0; c < cps(); ++c) lanes.push_back(gradients[c * tps() + k][key_lane]);
        FD_TRY(out.emplace_back(), tree(std::move(lanes), ReduceOp::sum));
      }
    }
    return out;
  }
  const Group& group = context_.groups.cp;
  Values to;
  for (const LaneRange lanes : group.lanes) {
    Values parts;
    for (int key_lane = lanes.begin; key_lane < lanes.end; ++key_lane) {
      for (std::size_t k = 0; k < tps(); ++k) {
        for (std::size_t c = 0; c < cps(); ++c) {
          parts.push_back(gradients[c * tps() + k][static_cast<std::size_t>(key_lane)]);
        }
      }
    }
    to.push_back(Value::pack(parts));
  }
  FD_TRY(const Value received, context_.parts.collectives.all_to_all(group, to, call("cp.key_gradients")));
  for (std::size_t own = 0; own < cps() * tps(); ++own) {
    Values lanes;
    for (std::size_t member = 0; member < static_cast<std::size_t>(group.size()); ++member) {
      for (std::size_t c = 0; c < cps(); ++c) {
        FD_TRY(lanes.emplace_back(), part_of(received, member, own * cps() + c));
      }
    }
    FD_TRY(out.emplace_back(), tree(std::move(lanes), ReduceOp::sum));
  }
  return out;
}

}  // namespace firedrill
