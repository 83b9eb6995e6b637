// Fingerprint: what all members of a group must agree on about one call. Pure.
//
// Two barriers of equal shape that mean different things differ in their purpose; a rank that is a step ahead differs
// in the step although it issues the very same call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/value.h"
#include "engine/seam/collective_op.h"

namespace firedrill {

struct Fingerprint {
  static constexpr std::int64_t any = -1;  // of count: members may differ, or do not all know it

  CollectiveOp op = CollectiveOp::barrier;
  std::optional<DType> dtype = {};  // absent: as count
  std::int64_t count = any;         // elements, of all parts of a pack together
  std::optional<ReduceOp> reduce = {};
  int root = -1;  // index in the group
  std::int64_t sequence = 0;
  std::int64_t step = 0;
  std::string_view purpose;

  bool operator==(const Fingerprint&) const = default;
};

// Elements of a Value, or of all parts of a pack; and the type of its elements.
std::int64_t elements_of(const Value& value);
std::optional<DType> element_type_of(const Value& value);

// `purpose`: the digest of its text, which callers may keep.
Digest digest_of(const Fingerprint& print, const Digest& purpose);
// "all_reduce f32 sum gradients", "broadcast root 0 find.choice": without sequence, step and count.
std::string describe(const Fingerprint& print);
// "step 6 instead of 5, purpose a instead of b"; empty: they agree.
std::string differences(const Fingerprint& odd, const Fingerprint& usual);

Value encode(const Fingerprint& print);
// The purpose points into `value`. Nothing: it is no fingerprint.
std::optional<Fingerprint> decode_fingerprint(const Value& value);

}  // namespace firedrill
