// Values as bytes, for the wire. A serialised Value is its outline (element types, shapes, structure of packs) and then
// the bytes of its buffers one after the other. The outline can be handled alone, so that a transport sends buffers
// from where they lie and receives them where they will stay.
//
// Parsing trusts nothing: garbage of any kind, lengths included, ends in `corrupted` and allocates no more than the
// caller allows. It does not verify contents; no digest travels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"

namespace firedrill {

std::vector<std::byte> serialise(const Value& value);
// Errors: corrupted.
Result<Value> parse(std::span<const std::byte> bytes);

// The outline of a Value; an empty Value has one, too.
std::vector<std::byte> outline_of(const Value& value);
// The buffers under a Value in the order in which they are serialised; empty buffers are left out.
std::vector<std::span<const std::byte>> buffers_of(const Value& value);

// Makes a Value from its outline and buffers that somebody else fills.
class ValueBuilder {
 public:
  // Errors: corrupted, also when the buffers would hold more than `bytes_max`.
  static Result<ValueBuilder> from_outline(std::span<const std::byte> outline, std::uint64_t bytes_max);

  // What must be filled, in the order of buffers_of.
  std::vector<std::span<std::byte>> buffers();
  std::uint64_t bytes_total() const { return bytes_total_; }
  Value finish() &&;

 private:
  struct Node {
    DType dtype = DType::u8;
    bool empty = false;    // an empty Value
    std::size_t size = 1;  // nodes of this subtree, itself included
    std::optional<MutableValue> buffer;
  };
  Value build(std::size_t index);

  std::vector<Node> nodes_;  // a tree in preorder
  std::uint64_t bytes_total_ = 0;
};

}  // namespace firedrill
