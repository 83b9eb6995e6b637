// WholeNetwork: a piece is one kernel. For jobs of one tp lane and one cp lane.
#include "engine/train/gradients.h"
#include "engine/train/lane_network.h"
#include "engine/train/network.h"

namespace firedrill {
namespace {

class WholeNetwork final : public Network {
 public:
  explicit WholeNetwork(const NetworkContext& context) : context_(context) {}

  Result<Value> forward(const Piece& piece, const Unit& unit, const Value& input) override {
    FD_TRY(const Value parameters, context_.parameters.of(piece.shared));
    return context_.model.forward(context_.parts.compute, piece.shared, parameters, input_of(piece, unit, input),
                                  unit.random);
  }

  Result<Value> backward(const Piece& piece, const Unit& unit, const Value& input, Value gradient,
                         GradientSums& sums) override {
    FD_TRY(const Value parameters, context_.parameters.of(piece.shared));
    FD_TRY(SegmentGradients gradients,
           context_.model.backward(context_.parts.compute, piece.shared, parameters, input_of(piece, unit, input),
                                   unit.random, std::move(gradient)));
    FD_TRY_VOID(sums.add(unit.lane, piece.shared, 0, std::move(gradients.parameters)));
    return std::move(gradients.input);
  }

  Result<Value> loss(const Piece& head, const Unit& unit, const Value& input, GradientSums& sums) override {
    FD_TRY(const Value parameters, context_.parameters.of(head.shared));
    FD_TRY(Value loss, context_.model.loss(context_.parts.compute, parameters, input, unit.targets()));
    FD_TRY_VOID(sums.add_loss(unit.lane, 0, std::move(loss)));
    return Value();
  }

  Result<Value> loss_backward(const Piece& head, const Unit& unit, const Value& input, const Value&,
                              GradientSums& sums) override {
    FD_TRY(const Value parameters, context_.parameters.of(head.shared));
    FD_TRY(SegmentGradients gradients,
           context_.model.loss_backward(context_.parts.compute, parameters, input, unit.targets(), unit.factor));
    FD_TRY_VOID(sums.add(unit.lane, head.shared, 0, std::move(gradients.parameters)));
    return std::move(gradients.input);
  }

 private:
  static const Value& input_of(const Piece& piece, const Unit& unit, const Value& input) {
    return piece.kind == PieceKind::embed ? unit.tokens : input;
  }

  NetworkContext context_;
};

}  // namespace

std::unique_ptr<Network> make_network(const NetworkContext& context) {
  if (context.model.whole()) return std::make_unique<WholeNetwork>(context);
  return std::make_unique<LaneNetwork>(context);
}

}  // namespace firedrill
