// Store: the keys by which the ranks of an attempt find each other. Not for bulk data.
//
// Errors: dead, aborted, timeout (get), unavailable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/seam/clock.h"

namespace firedrill {

class Store {
 public:
  virtual ~Store() = default;
  virtual Status set(std::string_view key, std::string_view value) = 0;
  // Waits until the key is there.
  virtual Result<std::string> get(std::string_view key, Time deadline) = 0;
  // Adds to a counter that starts at 0; returns the new value.
  virtual Result<std::int64_t> add(std::string_view key, std::int64_t amount) = 0;
};

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& inner) : inner_(inner) {}
  Status set(std::string_view key, std::string_view value) override { return inner_.set(key, value); }
  Result<std::string> get(std::string_view key, Time deadline) override { return inner_.get(key, deadline); }
  Result<std::int64_t> add(std::string_view key, std::int64_t amount) override { return inner_.add(key, amount); }

 protected:
  Store& inner_;
};

}  // namespace firedrill
