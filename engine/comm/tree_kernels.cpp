// The kernels of tree.h.
#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "engine/comm/tree.h"

namespace firedrill {
namespace {

struct Sum {
  float operator()(float a, float b) const { return a + b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {  // wraps, as it must not be undefined
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Max {
  float operator()(float a, float b) const { return a > b || a != a ? a : b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a > b ? a : b; }
};
struct Min {
  float operator()(float a, float b) const { return a < b || a != a ? a : b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a < b ? a : b; }
};

// `out` may be one of the inputs: element i depends on elements i only.
template <class Op, class T>
void apply(const T* left, const T* right, T* out, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = Op()(left[i], right[i]);
}

template <class Op, class T>
Value combine_buffers(Value left, Value right) {
  const std::span<const T> a = left.as<T>();
  const std::span<const T> b = right.as<T>();
  if (left.unique()) {
    MutableValue out(std::move(left));
    apply<Op>(a.data(), b.data(), out.as<T>().data(), a.size());
    return std::move(out).freeze();
  }
  if (right.unique()) {
    MutableValue out(std::move(right));
    apply<Op>(a.data(), b.data(), out.as<T>().data(), a.size());
    return std::move(out).freeze();
  }
  MutableValue out(left.dtype(), left.shape());
  apply<Op>(a.data(), b.data(), out.as<T>().data(), a.size());
  return std::move(out).freeze();
}

Error differ(const Value& left, const Value& right) {
  const auto outline = [](const Value& value) {
    return value ? fmt::format("{} of {} elements", to_string(value.dtype()), value.count()) : std::string("nothing");
  };
  return Error{
      .code = Code::mismatch,
      .message = fmt::format("two lanes give different things to reduce: {} and {}", outline(left), outline(right)),
      .hint = "f32 and i64 Values, or packs of them, of one shape on all lanes"};
}

template <class Op>
Result<Value> combine(Value left, Value right) {
  if (!left || !right || left.dtype() != right.dtype() || left.shape() != right.shape()) return differ(left, right);
  if (left.dtype() == DType::f32) return combine_buffers<Op, float>(std::move(left), std::move(right));
  if (left.dtype() == DType::i64) return combine_buffers<Op, std::int64_t>(std::move(left), std::move(right));
  if (left.dtype() != DType::pack) return differ(left, right);
  // The packs let go of their parts, so that parts held by nobody else are updated in place.
  std::vector<Value> parts(left.parts().begin(), left.parts().end());
  std::vector<Value> others(right.parts().begin(), right.parts().end());
  left = Value();
  right = Value();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    FD_TRY(parts[i], combine<Op>(std::move(parts[i]), std::move(others[i])));
  }
  return Value::pack(parts);
}

template <class Op>
Result<Value> run(std::span<const std::byte>, std::span<Value> inputs) {
  FD_CHECK(inputs.size() == 2, "{} inputs", inputs.size());
  return combine<Op>(std::move(inputs[0]), std::move(inputs[1]));
}

Result<Value> slice(std::span<const std::byte> scalars, std::span<Value> inputs) {
  const auto range = scalars_as<SliceScalars>(scalars);
  FD_CHECK(inputs.size() == 1, "{} inputs", inputs.size());
  return inputs[0].slice(range.begin, range.count);
}

Result<Value> concat(std::span<const std::byte>, std::span<Value> inputs) {
  FD_CHECK(!inputs.empty(), "nothing to concatenate");
  std::int64_t count = 0;
  for (const Value& input : inputs) {
    if (!input || input.is_pack() || input.dtype() != inputs[0].dtype()) return differ(inputs[0], input);
    count += input.count();
  }
  MutableValue whole(inputs[0].dtype(), Shape{count});
  std::byte* to = whole.bytes().data();
  for (const Value& input : inputs) {
    if (input.size() > 0) std::memcpy(to, input.bytes().data(), input.size());
    to += input.size();
  }
  return std::move(whole).freeze();
}

}  // namespace

constinit const Kernel add_kernel = make_kernel("comm.add", KernelKind::reduce, run<Sum>);
constinit const Kernel max_kernel = make_kernel("comm.max", KernelKind::reduce, run<Max>);
constinit const Kernel min_kernel = make_kernel("comm.min", KernelKind::reduce, run<Min>);
constinit const Kernel slice_kernel = make_kernel("comm.slice", KernelKind::other, slice);
constinit const Kernel concat_kernel = make_kernel("comm.concat", KernelKind::other, concat);

const Kernel& kernel_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return add_kernel;
    case ReduceOp::max: return max_kernel;
    case ReduceOp::min: return min_kernel;
  }
  fail_check(__FILE__, __LINE__, "op", "no such reduction");
}

}  // namespace firedrill
