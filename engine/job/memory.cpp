#include "engine/job/memory.h"

#include <algorithm>
#include <cmath>

#include "engine/job/pipeline.h"
#include "engine/job/tensors.h"

namespace firedrill {
namespace {

// One piece of a rank's stage, with what the rank holds of it.
struct HeldPiece {
  PieceRole role = PieceRole::mlp;
  const PieceSize* size = nullptr;
};

constexpr std::int64_t fp32 = 4;  // bytes

class RankPlan {
 public:
  RankPlan(const Job& job, const Layout& layout, int pp, int dp, Accumulators accumulators = Accumulators::by_lane)
      : job_(job), layout_(layout), bytes_(element_bytes(job)), pp_(pp), accumulators_(accumulators) {
    const int rank = (pp * layout.dp + dp) * layout.cp * layout.tp;
    place_ = place_of(job, layout, rank);
    for (const PieceRole role : {PieceRole::embed, PieceRole::attention, PieceRole::mlp, PieceRole::head})
      sizes_[static_cast<std::size_t>(role)] = size_of(role, job);
    const int stages = layout.pp * layout.virtual_stages;
    for (int stage = pp; stage < stages; stage += layout.pp) {
      std::vector<HeldPiece>& pieces = stages_.emplace_back();
      if (stage == 0) add(pieces, PieceRole::embed);
      for (int layer = 0; layer < layers_of_stage(job.model.layers, stages, stage).count(); ++layer) {
        add(pieces, PieceRole::attention);
        add(pieces, PieceRole::mlp);
      }
      if (stage == stages - 1) add(pieces, PieceRole::head);
    }
  }

  RankMemory memory() const {
    RankMemory memory;
    for (const auto& pieces : stages_) {
      for (const HeldPiece& piece : pieces) {
        each_segment(piece, [&](const Held& held) {
          if (held.second_use) return;
          const std::int64_t whole = held.times * held.segment.count;
          const std::int64_t shard = held.times * shard_of(held);
          memory.parameters += bytes_.parameter * (layout_.zero >= 3 ? shard : whole);
          memory.masters += bytes_.master * (layout_.zero >= 1 ? shard : whole);
          memory.moments += bytes_.moments * (layout_.zero >= 1 ? shard : whole);
        });
      }
    }
    memory.gradients = gradients();
    memory.activations = activations();
    memory.working = working();
    memory.buffers = buffers(memory.gradients);
    return memory;
  }

  int in_flight() const {
    const int units = micro_batches_per_rank(layout_, job_);
    if (layout_.schedule == PipelineSchedule::gpipe) return units;
    if (layout_.schedule == PipelineSchedule::one_f_one_b) return std::min(units, layout_.pp - pp_);
    int now = 0;
    int most = 0;
    for (const PipelineAction& action : pipeline_actions(layout_, pp_, units)) {
      now += action.backward ? -1 : 1;
      most = std::max(most, now);
    }
    return most;
  }

 private:
  void add(std::vector<HeldPiece>& pieces, PieceRole role) {
    pieces.push_back({.role = role, .size = &sizes_[static_cast<std::size_t>(role)]});
  }

  // Segments of one kind that the rank holds of a piece.
  struct Held {
    SegmentSize segment;
    std::int64_t times = 1;
    bool by_chunk = false;  // its gradient comes by (cp, tp) chunk, else by cp lane
    bool of_experts = false;
    bool second_use = false;  // tied weights that the rank holds already
  };
  template <class Visit>
  void each_segment(const HeldPiece& piece, Visit visit) const {
    const PieceSize& size = *piece.size;
    const std::int64_t lanes = place_.tp_lanes.count();
    visit(Held{.segment = size.shared, .by_chunk = !runs_whole(job_)});
    if (size.router.count > 0) visit(Held{.segment = size.router});
    if (size.lane.count > 0) {
      const bool tied = piece.role == PieceRole::head && job_.model.tied_embedding && layout_.pp == 1;
      visit(Held{.segment = size.lane, .times = lanes, .second_use = tied});
    }
    if (size.expert.count > 0) {
      visit(Held{.segment = size.expert, .times = lanes * (job_.model.experts / layout_.ep), .of_experts = true});
    }
  }

  // Of an ep group, which has cp ranks first.
  int dp_ranks_of_experts() const { return expert_block(layout_).dp; }

  // Elements of a flat segment that one dp rank has. Experts are cut over the dp lanes of their ep group.
  std::int64_t shard_of(const Held& held) const {
    const int together = held.of_experts ? dp_ranks_of_experts() : 1;
    const int lanes = job_.lanes.dp / layout_.dp * together;
    const int first = place_.dp / together * lanes;
    return shard_range(held.segment.count, job_.lanes.dp, first + lanes - 1).end -
           shard_range(held.segment.count, job_.lanes.dp, first).begin;
  }

  // Elements, told apart because experts' gradients are exchanged on their own, behind the rest.
  struct Elements {
    std::int64_t rest = 0;
    std::int64_t experts = 0;
    std::int64_t all() const { return rest + experts; }
    void add(const Held& held, std::int64_t elements) { (held.of_experts ? experts : rest) += elements; }
    void add(const Elements& other) {
      rest += other.rest;
      experts += other.experts;
    }
  };

  // Accumulators of one own dp lane's gradients of a piece. Those of experts are of all lanes of the ep group, whose
  // ranks run in lockstep.
  Elements accumulators_of(const HeldPiece& piece) const {
    const std::int64_t cps = place_.cp_lanes.count();
    Elements sum;
    each_segment(piece, [&](const Held& held) {
      std::int64_t slots = cps * (held.by_chunk ? place_.chunks.count() : held.of_experts ? layout_.ep : 1);
      if (accumulators_ == Accumulators::one) slots = 1;
      sum.add(held, held.segment.count * held.times * slots);
    });
    return sum;
  }

  // What is left of them when their exchange over dp lanes begins: one for each lane.
  Elements exchanged_of(const HeldPiece& piece) const {
    Elements sum;
    each_segment(piece, [&](const Held& held) {
      const bool together = held.of_experts && accumulators_ == Accumulators::by_lane;
      sum.add(held, held.times * held.segment.count * (together ? dp_ranks_of_experts() : 1));
    });
    return sum;
  }

  std::int64_t elements_of(const HeldPiece& piece) const {
    std::int64_t sum = 0;
    each_segment(piece, [&](const Held& held) { sum += held.times * held.segment.count; });
    return sum;
  }

  // Bytes of an accumulator's element after so many micro-batches: sums are kept in fp32.
  std::int64_t accumulator_bytes(int micro_batches) const {
    return micro_batches > 1 ? fp32 : micro_batches * bytes_.gradient;
  }

  // Accumulators and sums in the course of a step, and the bucket that waits.
  struct GradientBytes {
    std::int64_t lanes = 1;  // with accumulators of their own
    std::int64_t full = fp32;
    std::int64_t live = 0;
    std::int64_t peak = 0;
    std::int64_t waiting_bytes = 0;
    Elements waiting = {};    // of one lane
    Elements exchanged = {};  // what the trees over chunks and cp lanes leave of them

    void add(std::int64_t bytes) {
      live += bytes;
      peak = std::max(peak, live);
    }
    // Accumulators are fp32 when the trees add them up.
    void exchange(std::int64_t accumulators, std::int64_t left) {
      add(lanes * accumulators * (fp32 - full));
      add(lanes * (left - accumulators) * fp32);
    }
    void exchange_waiting() {
      exchange(waiting.rest, exchanged.rest);
      exchange(waiting.experts, exchanged.experts);
      waiting_bytes = 0;
      waiting = exchanged = {};
    }
  };

  // In the last backward of a run of layers its accumulators become complete piece by piece, and buckets of them start
  // on their exchange, which ends with the step.
  void last_backward(const std::vector<HeldPiece>& pieces, std::int64_t added, GradientBytes& gradients) const {
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const Elements own = accumulators_of(*piece);
      gradients.add(own.all() * added);
      gradients.waiting.add(own);
      gradients.exchanged.add(exchanged_of(*piece));
      gradients.waiting_bytes += elements_of(*piece) * fp32;
      if (layout_.bucket_bytes != 0 && gradients.waiting_bytes >= layout_.bucket_bytes) gradients.exchange_waiting();
    }
  }

  std::int64_t gradients() const {
    const bool one = accumulators_ == Accumulators::one;
    const int units = micro_batches_per_rank(layout_, job_);
    const int adds = one ? units : job_.batch.accumulation;
    const auto added = [&](int unit) { return accumulator_bytes(unit % adds + 1) - accumulator_bytes(unit % adds); };
    GradientBytes gradients{.lanes = one ? 1 : place_.dp_lanes.count(), .full = accumulator_bytes(adds)};
    std::vector<std::int64_t> own;  // elements, by run of layers
    for (const auto& pieces : stages_) {
      std::int64_t& sum = own.emplace_back();
      for (const HeldPiece& piece : pieces) sum += accumulators_of(piece).all();
    }
    const auto backward = [&](std::size_t stage, int unit) {
      if (unit == units - 1) return last_backward(stages_[stage], added(unit), gradients);
      gradients.add(own[stage] * added(unit));
    };
    if (layout_.schedule != PipelineSchedule::interleaved) {
      for (int unit = 0; unit < units; ++unit) backward(0, unit);
    } else {
      for (const PipelineAction& action : pipeline_actions(layout_, pp_, units)) {
        if (action.backward) backward(static_cast<std::size_t>(action.stage), action.unit);
      }
    }
    gradients.exchange_waiting();
    return gradients.peak;
  }

  // One activation as this rank has it: of its chunks.
  std::int64_t activation() const {
    return tokens() * place_.chunks.count() / job_.lanes.tp * job_.model.width * bytes_.activation;
  }
  // Of one micro-batch, in the rank's cp lanes.
  std::int64_t tokens() const {
    return static_cast<std::int64_t>(job_.batch.lane_micro_batch) * (job_.model.sequence / job_.lanes.cp) *
           place_.cp_lanes.count();
  }
  // Tokens and row mask, where the rank reads them.
  std::int64_t input() const {
    if (pp_ != 0 && pp_ != layout_.pp - 1 && job_.model.experts == 0) return 0;  // a router looks at the row mask
    const std::int64_t word = job_.model.vocabulary <= 256 ? 1 : 4;
    return job_.batch.lane_micro_batch * ((job_.model.sequence + 1) * word + 1);
  }

  // Bytes of one micro-batch in one run of layers: kept until its backward, and the most beyond that in a forward and
  // in a backward.
  struct StageActivations {
    std::int64_t kept = 0;
    std::int64_t forward = 0;
    std::int64_t backward = 0;
  };
  StageActivations stage_activations(const std::vector<HeldPiece>& pieces) const {
    const std::int64_t x = activation();
    const bool by_layer = layout_.recompute == Recompute::layer;
    StageActivations stage;
    for (const HeldPiece& piece : pieces) {
      if (piece.role == PieceRole::embed || (by_layer && piece.role == PieceRole::mlp)) continue;
      stage.kept += x;
    }
    const bool has_head = pieces.back().role == PieceRole::head;
    const bool has_layers = pieces.size() > (has_head ? 1U : 0U) + (pieces.front().role == PieceRole::embed ? 1U : 0U);
    const std::int64_t statistics = has_head && !runs_whole(job_) ? 3 * fp32 * tokens() : 0;  // of the softmax
    stage.kept += statistics;
    const std::int64_t not_kept = by_layer && has_layers ? x : 0;  // the input of an MLP: in hand, or computed again
    // The output in hand; a head has none.
    stage.forward = (has_head ? 0 : x) + not_kept;
    // Gradient in and out; a head has none that comes in, and its own input and statistics are gone when the layers
    // begin.
    stage.backward = has_head ? std::max(x, x + not_kept - statistics) : 2 * x + not_kept;
    return stage;
  }

  std::int64_t activations() const {
    std::vector<StageActivations> stages;
    for (const auto& pieces : stages_) stages.push_back(stage_activations(pieces));
    if (layout_.schedule != PipelineSchedule::interleaved) {
      const StageActivations& only = stages.front();
      return in_flight() * (only.kept + input()) + std::max(only.forward, only.backward);
    }
    std::int64_t live = 0;
    std::int64_t peak = 0;
    for (const PipelineAction& action : pipeline_actions(layout_, pp_, micro_batches_per_rank(layout_, job_))) {
      const StageActivations& stage = stages[static_cast<std::size_t>(action.stage)];
      if (!action.backward) live += stage.kept + (action.stage == 0 ? input() : 0);
      peak = std::max(peak, live + (action.backward ? stage.backward : stage.forward));
      if (action.backward) live -= stage.kept + (action.stage == 0 ? input() : 0);
    }
    return peak;
  }

  // The inside of a segment: what a backward that recomputes its forward has at once, and the gradient it gives.
  std::int64_t working() const {
    std::int64_t most = 0;
    for (const auto& pieces : stages_) {
      for (const HeldPiece& piece : pieces) most = std::max(most, working_of(piece));
    }
    return most;
  }

  std::int64_t working_of(const HeldPiece& piece) const {
    const ModelSpec& model = job_.model;
    const std::int64_t t = tokens();
    const std::int64_t own = place_.tp_lanes.count();
    const std::int64_t lanes = job_.lanes.tp;
    const std::int64_t e = bytes_.activation;
    const std::int64_t gradient = elements_of(piece) * bytes_.gradient;
    switch (piece.role) {
      case PieceRole::embed: return t * model.width * e;
      case PieceRole::attention: {
        const std::int64_t kv = static_cast<std::int64_t>(job_.batch.lane_micro_batch) * model.sequence * 2 *
                                (model.width / model.heads) * kv_heads_of(model);
        // Normed input; queries, output, keys and values of all cp lanes; each with its gradient.
        return 2 * e * (t * model.width + (2 * t * model.width + kv) * own / lanes) + gradient;
      }
      case PieceRole::mlp: {
        // Gate, up and their product. Experts run one at a time, on padded rows; dispatched and combined rows besides.
        const std::int64_t hidden = 3 * model.hidden_size() * own / lanes;
        if (model.experts == 0) return 2 * e * t * (model.width + hidden) + gradient;
        const auto rows = static_cast<std::int64_t>(std::ceil(model.capacity_factor * model.top_k * t));
        const std::int64_t of_expert = (rows + model.experts - 1) / model.experts * layout_.ep;
        return 2 * e * (2 * rows * model.width + of_expert * hidden) + gradient / (model.experts / layout_.ep);
      }
      case PieceRole::head:
        // Logits and their gradient in fp32.
        return 2 * 4 * t * model.vocabulary * own / lanes + e * t * model.width + gradient;
    }
    return 0;
  }

  std::int64_t buffers(std::int64_t gradients) const {
    std::int64_t buffers = 0;
    if (layout_.dp > 1) {
      buffers += layout_.bucket_bytes == 0 ? gradients : std::min<std::int64_t>(layout_.bucket_bytes, gradients);
    }
    if (layout_.zero >= 3 && layout_.dp > 1) {
      buffers += gathered() * bytes_.parameter;
    }
    if (layout_.tp > 1) buffers += tokens() * job_.model.width * bytes_.activation;
    if (layout_.pp > 1) buffers += activation();
    return buffers;
  }

  // The most elements that are whole at once with ZeRO 3: those of a piece, and with prefetch of the one behind it; an
  // attention that runs again for the input of its MLP stays until its own backward.
  std::int64_t gathered() const {
    std::int64_t most = 0;
    for (const auto& pieces : stages_) {
      std::int64_t before = 0;
      for (const HeldPiece& piece : pieces) {
        const std::int64_t own = elements_of(piece);
        const bool again = layout_.recompute == Recompute::layer && piece.role == PieceRole::mlp;
        most = std::max(most, own + (layout_.prefetch || again ? before : 0));
        before = own;
      }
    }
    return most;
  }

  const Job& job_;
  const Layout& layout_;
  ElementBytes bytes_;
  int pp_;
  Accumulators accumulators_;
  RankPlace place_;
  PieceSize sizes_[4];
  std::vector<std::vector<HeldPiece>> stages_;
};

}  // namespace

ElementBytes element_bytes(const Job& job) {
  if (job.precision.parameters == Precision::fp32) return {};
  return {.parameter = 2, .gradient = 2, .master = 4, .moments = 8, .activation = 2};
}

RankMemory memory_of(const Job& job, const Layout& layout, int pp, int dp, Accumulators accumulators) {
  return RankPlan(job, layout, pp, dp, accumulators).memory();
}

int micro_batches_in_flight(const Job& job, const Layout& layout, int pp) {
  return RankPlan(job, layout, pp, 0).in_flight();
}

}  // namespace firedrill
