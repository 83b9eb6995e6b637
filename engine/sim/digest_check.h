// DigestCheckCompute: hashes every input of every kernel again and holds it against the digest it carries. A Value that
// was changed behind its digest's back would make the memo lie; this finds it. Too slow for every trial: a sample runs
// with it.
#pragma once

#include "engine/base/check.h"
#include "engine/seam/compute.h"

namespace firedrill::sim {

class DigestCheckCompute final : public ForwardingCompute {
 public:
  using ForwardingCompute::ForwardingCompute;

  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    for (const Value& input : inputs) {
      FD_CHECK(!input || input.digest() == input.digest_recomputed(), "an input of {} has the digest of other bytes",
               kernel.name);
    }
    return inner_.run(kernel, scalars, inputs);
  }
};

}  // namespace firedrill::sim
