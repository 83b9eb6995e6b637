// Compute: runs kernels. A Kernel is a pure function of its scalars and input Values: same inputs, same bits, no seam
// call, no state, no clock. Segments, tree additions, optimizer updates, shard encoding and decoding are kernels, and
// all of them run through this seam. Because they are pure, a decorator may look a result up (memo), charge virtual
// time, compute twice and compare, or damage a result (faults).
//
// Threads: called from the rank's tasks, one call at a time. Errors: what the kernel says (corrupted bytes, invalid
// input), and dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "engine/base/result.h"
#include "engine/base/value.h"

namespace firedrill {

// What a kernel is for: the sim world's cost table speaks of these.
enum class KernelKind : std::uint8_t { forward, backward, optimizer, reduce, codec, other };

// Of which piece of the model a forward or backward kernel is the bulk.
enum class WorkKind : std::uint8_t { none, embed, attention, mlp, head, expert };
inline constexpr int work_kind_count = 6;

struct Kernel {
  // Unique over the program, dotted: "model.attention.forward". Part of every memo key.
  std::string_view name;
  KernelKind kind = KernelKind::other;
  // Inputs may be consumed (moved from): a buffer that nobody else holds may be updated in place.
  Result<Value> (*run)(std::span<const std::byte> scalars, std::span<Value> inputs) = nullptr;
  std::uint64_t id = 0;
  WorkKind work = WorkKind::none;
};

constexpr Kernel make_kernel(std::string_view name, KernelKind kind,
                             Result<Value> (*run)(std::span<const std::byte>, std::span<Value>),
                             WorkKind work = WorkKind::none) {
  std::uint64_t id = 0xCBF29CE484222325ULL;  // FNV-1a of the name
  for (const char c : name) id = (id ^ static_cast<std::uint8_t>(c)) * 0x100000001B3ULL;
  return Kernel{.name = name, .kind = kind, .run = run, .id = id, .work = work};
}

class Compute {
 public:
  virtual ~Compute() = default;
  // Several results come as a pack. `inputs` are consumed; an absent input is an empty Value.
  virtual Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) = 0;
};

// Runs the kernel at once.
class DirectCompute final : public Compute {
 public:
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    return kernel.run(scalars, inputs);
  }
};

class ForwardingCompute : public Compute {
 public:
  explicit ForwardingCompute(Compute& inner) : inner_(inner) {}
  Result<Value> run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) override {
    return inner_.run(kernel, scalars, inputs);
  }

 protected:
  Compute& inner_;
};

// A call whose scalars are one plain struct. The struct must have no padding: its bytes are part of the memo key.
template <class Scalars>
Result<Value> run_kernel(Compute& compute, const Kernel& kernel, const Scalars& scalars, std::span<Value> inputs) {
  static_assert(std::is_trivially_copyable_v<Scalars>);
  static_assert(std::has_unique_object_representations_v<Scalars> || std::is_floating_point_v<Scalars>,
                "no padding and no floats in a struct of scalars: keep floats as bits (std::bit_cast)");
  return compute.run(kernel, std::as_bytes(std::span(&scalars, 1)), inputs);
}

// The same with the inputs listed: run_kernel(compute, kernel, scalars, {a, b}). The Values are copied (a reference
// each).
template <class Scalars>
Result<Value> run_kernel(Compute& compute, const Kernel& kernel, const Scalars& scalars,
                         std::initializer_list<Value> inputs) {
  FD_CHECK(inputs.size() <= 8, "{} inputs: pack them", inputs.size());
  Value copies[8];
  std::size_t n = 0;
  for (const Value& input : inputs) copies[n++] = input;
  return run_kernel(compute, kernel, scalars, std::span(copies, n));
}

// Inside a kernel: the scalars as the struct they were.
template <class Scalars>
Scalars scalars_as(std::span<const std::byte> bytes) {
  Scalars scalars;
  FD_CHECK(bytes.size() == sizeof(Scalars), "{} bytes of scalars, not {}", bytes.size(), sizeof(Scalars));
  std::memcpy(&scalars, bytes.data(), sizeof(Scalars));
  return scalars;
}

}  // namespace firedrill
