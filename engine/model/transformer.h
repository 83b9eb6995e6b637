// Model: a byte-level transformer language model as a list of segments. Each segment is a pure function
// (parameters, input, random counter) -> output; its backward is a pure function of the same and the gradient of the
// output, and recomputes the forward. Backward is written out; no autograd graph exists. All work runs as kernels
// through the compute seam, always on a lane's own shapes.
//
// Shapes: tokens u8 [rows, sequence + 1] (the embed segment reads all but the last column, the head all but the first);
// activations [rows, sequence, width]; parameters and their gradients [segment.count]; both f32, or of
// 16 bits (mixed.h).
// Threads: const and without state; one call at a time per thread. Errors: what the compute seam says (dead).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/job/job.h"
#include "engine/model/segment.h"
#include "engine/seam/compute.h"

namespace firedrill {

struct SegmentGradients {
  Value input;       // as the segment's input; empty for the embed segment, whose input is tokens
  Value parameters;  // f32 [segment.count]; padding is zero
};

// What the head needs besides its input.
struct Targets {
  Value tokens;    // u8 [rows, sequence + 1]
  Value row_mask;  // u8 [rows]: 1 present, 0 absent (counts for exactly nothing); empty: all are present
};

class Model {
 public:
  explicit Model(const Job& job);

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // One tp lane and one cp lane, no experts: every piece is one kernel over one segment. Else the pieces are run by
  // LaneModel and MoeModel; so are those of a tied model, whose token weights have to be a segment of their own.
  bool whole() const { return lanes_.tp == 1 && lanes_.cp == 1 && spec_.experts == 0 && !tied(); }
  bool tied() const { return spec_.tied_embedding; }
  // The type of the parameters that kernels read, and of activations. Their masters are f32.
  DType dtype() const { return dtype_; }
  // What adds up the gradients of a segment that `piece` uses: the segment's own number, but for the second use of tied
  // weights, whose accumulators are numbered behind all segments.
  std::size_t accumulator(const Piece& piece, std::size_t segment) const {
    const bool second_use = tied() && piece.kind == PieceKind::head && segment != piece.shared;
    return second_use ? segments_.size() + segment - piece.lanes : segment;
  }
  std::size_t accumulator_count() const {
    return segments_.size() + (tied() ? static_cast<std::size_t>(lanes_.tp) : 0);
  }
  std::size_t segment_of(std::size_t accumulator) const {
    return accumulator < segments_.size() ? accumulator : pieces_.back().lanes + accumulator - segments_.size();
  }
  std::size_t head() const { return segments_.size() - 1; }
  std::int64_t parameter_count() const;  // of all segments, without padding

  // f32 [segment.count]: a pure function of the seed and the tensors' names and shapes.
  Result<Value> initial_parameters(Compute& compute, std::size_t segment, std::uint64_t seed) const;

  // Of a whole model (see whole()), any segment but the head. Without a random counter nothing is dropped (evaluation).
  Result<Value> forward(Compute& compute, std::size_t segment, const Value& parameters, const Value& input,
                        const std::optional<RandomCounter>& random) const;
  Result<SegmentGradients> backward(Compute& compute, std::size_t segment, const Value& parameters, const Value& input,
                                    const std::optional<RandomCounter>& random, Value output_gradient) const;

  // The head. Loss: f32 [1], the sum over all present tokens (nats).
  Result<Value> loss(Compute& compute, const Value& parameters, const Value& input, const Targets& targets) const;
  // Gradients of factor * loss; factor = loss scale / present tokens of the global batch.
  Result<SegmentGradients> loss_backward(Compute& compute, const Value& parameters, const Value& input,
                                         const Targets& targets, float factor) const;

 private:
  void add_segment(SegmentKind kind, const Piece& piece, int tp_lane, int expert = -1);
  void add_piece(PieceKind kind, std::uint32_t layer);
  void add_experts(Piece& piece);

  ModelSpec spec_;
  Lanes lanes_;
  DType dtype_;
  std::vector<Segment> segments_;
  std::vector<Piece> pieces_;
};

}  // namespace firedrill
