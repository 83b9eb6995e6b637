#include "engine/base/half.h"

#include <vector>

namespace firedrill {
namespace {

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

template <class Convert>
Value part_by_part(const Value& pack, Convert convert) {
  std::vector<Value> parts;
  for (const Value& part : pack.parts()) parts.push_back(convert(part));
  return Value::pack(parts);
}

}  // namespace

Value widened(const Value& value) {
  if (!value) return value;
  if (value.is_pack()) return part_by_part(value, [](const Value& part) { return widened(part); });
  if (!is_half(value.dtype())) return value;
  MutableValue out(DType::f32, value.shape());
  const auto from = value.as<std::uint16_t>();
  float* to = out.as<float>().data();
  if (value.dtype() == DType::bf16) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = widen_bf16(from[i]);
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = widen_f16(from[i]);
  }
  return std::move(out).freeze();
}

Value narrowed(const Value& value, DType dtype) {
  if (!value || dtype == DType::f32) return value;
  if (value.is_pack()) return part_by_part(value, [dtype](const Value& part) { return narrowed(part, dtype); });
  FD_CHECK(value.dtype() == DType::f32 && is_half(dtype), "a {} cannot be narrowed to {}", to_string(value.dtype()),
           to_string(dtype));
  MutableValue out(dtype, value.shape());
  const auto from = value.as<float>();
  std::uint16_t* to = out.as<std::uint16_t>().data();
  if (dtype == DType::bf16) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = narrow_bf16(from[i]);
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = narrow_f16(from[i]);
  }
  return std::move(out).freeze();
}

void round_to(DType dtype, std::span<float> numbers) {
  if (dtype == DType::bf16) {
    for (float& x : numbers) x = widen_bf16(narrow_bf16(x));
  } else if (dtype == DType::f16) {
    for (float& x : numbers) x = widen_f16(narrow_f16(x));
  } else {
    FD_CHECK(dtype == DType::f32, "{} is no float", to_string(dtype));
  }
}

}  // namespace firedrill
