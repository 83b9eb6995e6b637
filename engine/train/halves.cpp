#include "engine/train/halves.h"

namespace firedrill {
namespace {

Result<Value> run_widen(std::span<const std::byte>, std::span<Value> inputs) { return widened(inputs[0]); }

Result<Value> run_narrow(std::span<const std::byte> scalars, std::span<Value> inputs) {
  return narrowed(inputs[0], static_cast<DType>(scalars_as<std::uint64_t>(scalars)));
}

}  // namespace

const Kernel widen_kernel = make_kernel("train.widen", KernelKind::other, run_widen);
const Kernel narrow_kernel = make_kernel("train.narrow", KernelKind::other, run_narrow);

Status widen_in_place(Compute& compute, Value& value) {
  if (!value || value.dtype() == DType::f32) return {};
  Value inputs[] = {std::move(value)};
  FD_TRY(value, compute.run(widen_kernel, {}, inputs));
  return {};
}

Status narrow_in_place(Compute& compute, Value& value, DType dtype) {
  if (!value || dtype == DType::f32) return {};
  Value inputs[] = {std::move(value)};
  FD_TRY(value, run_kernel(compute, narrow_kernel, static_cast<std::uint64_t>(dtype), inputs));
  return {};
}

}  // namespace firedrill
