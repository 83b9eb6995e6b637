// Network: what the trainer runs the pieces of a model through.
//
// How a step is computed, whatever the layout. Loops from the outside in:
//
//   units     a unit is one micro-batch of one dp lane. A rank runs the units of the dp lanes it owns, in the order of
//             its pipeline schedule (pipeline.h); backwards of one stage always in index order.
//   pieces    of the stages that the rank owns. Between two stages an activation goes to the rank of the same (dp, cp,
//             tp) place in the next stage, and its gradient comes back.
//   lanes     within a piece: norm, dropout and residual run for each (cp, tp) chunk of the sequence; attention, MLP,
//             embedding and logits for each (cp, tp) lane. Every kernel sees one lane's shapes, so its bits do not
//             depend on who runs it. What a lane needs of others (all chunks of its cp lane, keys and values of all cp
//             lanes) is moved; what lanes add up is added by the one fixed tree over them, first among the lanes that
//             one rank owns, then between ranks.
//
// Gradients: each (dp, cp, tp) lane or chunk has an accumulator for each segment and adds its micro-batches left to
// right. At the end of the step three trees are added: over tp chunks (segments that all tp lanes share), over cp
// lanes, over dp lanes (gradients.h). Then norm, clipping, overflow: every rank learns every segment's sum of squares
// and adds them in the model's order. Then each rank updates the segments that it owns.
//
// Who holds what. A rank holds the segments of its stages' pieces: the shared ones, and those of its tp lanes; cp ranks
// hold the same, and so do dp ranks, but for what ZeRO shards: of each segment's flat Value a dp rank then holds the
// shards of its dp lanes (of moments and of masters of 16-bit parameters; from 2 on of gradients; with 3 of parameters,
// which are gathered for each piece and let go behind it). The token weights of a tied model are held by the first and
// the last stage: each use has accumulators of its own, the two totals are exchanged and added, and both update alike.
// A shard is a run of whole grains fixed by the lane, so elementwise updates and the grains of the norm are the same
// wherever it lies. The state visitor (state.h) lists exactly these under names that do not know the layout, and says
// who else holds them, so that each holder saves its share and any other layout finds what it needs by name and range.
//
// Experts lie on the ranks of an ep group; a rank has an accumulator for each of the group's (dp, cp) lanes and each of
// its experts, and the trees over cp and dp lanes are added among the ranks that hold the same experts (layout.h). With
// ZeRO an expert is cut over those dp lanes just like other segments over theirs.
//
// A job of one tp and one cp lane and without experts has one kernel for a piece (WholeNetwork); all others run lane by
// lane (LaneNetwork, and ExpertLayer within).
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/job/layout.h"
#include "engine/model/transformer.h"
#include "engine/seam/parts.h"
#include "engine/train/holdings.h"
#include "engine/train/memory_use.h"
#include "engine/train/optimizer.h"
#include "engine/train/rules.h"

namespace firedrill {

class GradientSums;

// One micro-batch of one dp lane.
struct Unit {
  std::size_t lane = 0;  // index among the dp lanes that this rank owns
  RandomCounter random;
  Value tokens;  // on the first and the last stage
  Value mask;
  float factor = 1;  // of the loss, before backward
  Targets targets() const { return {.tokens = tokens, .row_mask = mask}; }
};

struct NetworkContext;

// The parameters that kernels read, by segment: the optimizer's own, or with 16 bits what they are rounded to. The
// rounded ones are derived, after each update and when training begins, and never saved. With ZeRO 3 a rank holds
// shards only, and a piece's segments are whole between gather and release; with 1 and 2 masters of 16-bit parameters
// are sharded as moments are, and the parameters themselves are whole.
class Parameters {
 public:
  Parameters(const Job& job, const Holdings& holdings, const std::vector<OptimizerState>& segments);
  // Rounds the masters anew: all dp ranks call this after the masters have changed. Without 16 bits nothing is done.
  Status derive(const NetworkContext& context);
  // derive() was called once, or need not be.
  bool derived() const { return derived_; }
  Result<Value> of(std::size_t segment) const;
  // All dp ranks call this for the same pieces in the same order.
  Status gather(const NetworkContext& context, const Piece& piece);
  void release(const Piece& piece);
  // Of what is held between gathers.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (std::size_t segment = 0; segment < segments_.size(); ++segment) sum += bytes_held(held(segment));
    return sum;
  }

 private:
  const Value& held(std::size_t segment) const {
    return holdings_.sixteen_bits ? rounded_[segment] : segments_[segment].parameters;
  }

  const Holdings& holdings_;
  const std::vector<OptimizerState>& segments_;
  DType dtype_;
  bool derived_;
  std::vector<Value> rounded_;  // with 16 bits, by segment: whole, or with ZeRO 3 the shard
  std::map<std::size_t, Value> gathered_;
};

// An activation is one Value, or a pack with one Value for each chunk that this rank computes. Errors: those of the
// seams. Threads: the rank's main task.
class Network {
 public:
  virtual ~Network() = default;

  // Any piece but the head; the embedding's input is the unit's tokens.
  virtual Result<Value> forward(const Piece& piece, const Unit& unit, const Value& input) = 0;
  // The gradient of the input (nothing for the embedding); those of the parameters go to `sums`.
  virtual Result<Value> backward(const Piece& piece, const Unit& unit, const Value& input, Value gradient,
                                 GradientSums& sums) = 0;
  // The head adds its loss to `sums` and returns what its backward wants to know again.
  virtual Result<Value> loss(const Piece& head, const Unit& unit, const Value& input, GradientSums& sums) = 0;
  virtual Result<Value> loss_backward(const Piece& head, const Unit& unit, const Value& input, const Value& known,
                                      GradientSums& sums) = 0;
};

struct NetworkContext {
  const Job& job;
  const Model& model;
  const RankPlace& place;
  const Groups& groups;
  Parts& parts;
  Parameters& parameters;
  const TrainingRules& rules;

  Call call(std::string_view purpose) const {
    return Call{.purpose = purpose, .deadline = parts.clock.now() + job.cluster.deadline};
  }
};

// The one that fits the job. What `context` refers to must outlive it.
std::unique_ptr<Network> make_network(const NetworkContext& context);

}  // namespace firedrill
