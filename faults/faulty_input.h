// The input seam, with the planned faults of its rank around every read of rows.
#pragma once

#include "engine/seam/input.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyInput final : public ForwardingInput {
 public:
  FaultyInput(Input& inner, Injector& injector) : ForwardingInput(inner), injector_(injector) {}
  Result<Value> rows(const Value& samples) override {
    if (!injector_.watches(SeamOp::input)) return inner_.rows(samples);
    Value rows;
    FD_TRY_VOID(injector_.around({.op = SeamOp::input, .value = &rows}, [&]() -> Status {
      FD_TRY(rows, inner_.rows(samples));
      return {};
    }));
    return rows;
  }

 private:
  Injector& injector_;
};

}  // namespace firedrill
