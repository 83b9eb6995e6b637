// The compute seam, with the planned faults of its rank around every kernel.
#pragma once

#include "engine/seam/compute.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyCompute final : public ForwardingCompute {
 public:
  FaultyCompute(Compute& inner, Injector& injector) : ForwardingCompute(inner), injector_(injector) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    if (!injector_.watches(SeamOp::compute)) return inner_.run(kernel, scalars, inputs);
    Value computed;
    FD_TRY_VOID(injector_.around({.op = SeamOp::compute, .kernel = kernel.kind, .value = &computed}, [&]() -> Status {
      FD_TRY(computed, inner_.run(kernel, scalars, inputs));
      return {};
    }));
    return computed;
  }

 private:
  Injector& injector_;
};

}  // namespace firedrill
