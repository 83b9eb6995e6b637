// The store seam, with the planned faults of its rank around every call.
#pragma once

#include <string>
#include <string_view>

#include "engine/seam/store.h"
#include "faults/injector.h"

namespace firedrill {

class FaultyStore final : public ForwardingStore {
 public:
  FaultyStore(Store& inner, Injector& injector) : ForwardingStore(inner), injector_(injector) {}
  Status set(std::string_view key, std::string_view value) override {
    return injector_.around({.op = SeamOp::store}, [&] { return inner_.set(key, value); });
  }
  Result<std::string> get(std::string_view key, Time deadline) override {
    return injector_.around({.op = SeamOp::store}, [&] { return inner_.get(key, deadline); });
  }
  Result<std::int64_t> add(std::string_view key, std::int64_t amount) override {
    return injector_.around({.op = SeamOp::store}, [&] { return inner_.add(key, amount); });
  }

 private:
  Injector& injector_;
};

}  // namespace firedrill
