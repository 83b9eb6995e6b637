// Which bytes of which shards a state needs, and the state from those bytes. Pure: two kernels and the records between.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/base/result.h"
#include "engine/ckpt/manifest.h"
#include "engine/seam/compute.h"

namespace firedrill {

// One read of a shard file. Neighbouring pieces are read together, with the header where they follow it.
struct ReadRecord {
  std::int64_t shard = 0;  // index in ManifestView::shards()
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

class RestorePlan {
 public:
  RestorePlan() = default;
  explicit RestorePlan(Value plan) : plan_(std::move(plan)) {}
  std::span<const ReadRecord> reads() const {
    const auto bytes = plan_[0].bytes();
    return {reinterpret_cast<const ReadRecord*>(bytes.data()), bytes.size() / sizeof(ReadRecord)};
  }
  // One byte per tensor of the manifest: 1 if this state takes it.
  std::span<const std::byte> taken() const { return plan_[2].bytes(); }
  const Value& value() const { return plan_; }

 private:
  Value plan_;
};

// `structure` is encode_structure of what to restore. Errors: mismatch, naming the tensor and both sides.
Result<RestorePlan> plan_restore(Compute& compute, const ManifestView& manifest, const Value& structure);

// A pack with one Value per group, from a pack with one Value per read. Every piece is checked against its digest.
// Errors: corrupted, naming shard and tensor.
Result<Value> assemble(Compute& compute, const ManifestView& manifest, const RestorePlan& plan, const Value& structure,
                       const Value& reads);

std::string describe_tensor(const ManifestView& manifest, const TensorRecord& tensor);  // "w (f32 [3, 4])"

}  // namespace firedrill
