#include "engine/comm/fingerprint.h"

#include <fmt/format.h>

#include <array>

#include "engine/base/bytes.h"

namespace firedrill {
namespace {

constexpr std::uint8_t nothing = 0xFF;

std::uint8_t code_of(std::optional<DType> dtype) { return dtype ? static_cast<std::uint8_t>(*dtype) : nothing; }
std::uint8_t code_of(std::optional<ReduceOp> reduce) { return reduce ? static_cast<std::uint8_t>(*reduce) : nothing; }

std::string in_words(std::optional<DType> dtype) { return std::string(dtype ? to_string(*dtype) : "none"); }
std::string in_words(std::optional<ReduceOp> reduce) { return std::string(reduce ? to_string(*reduce) : "none"); }

}  // namespace

std::int64_t elements_of(const Value& value) {
  if (!value) return 0;
  if (!value.is_pack()) return value.count();
  std::int64_t elements = 0;
  for (const Value& part : value.parts()) elements += elements_of(part);
  return elements;
}

std::optional<DType> element_type_of(const Value& value) {
  if (!value) return std::nullopt;
  if (!value.is_pack()) return value.dtype();
  for (const Value& part : value.parts()) {
    if (const auto type = element_type_of(part)) return type;
  }
  return std::nullopt;
}

Digest digest_of(const Fingerprint& print, const Digest& purpose) {
  const std::array<std::uint64_t, 7> words = {static_cast<std::uint64_t>(print.op) << 16 |
                                                  static_cast<std::uint64_t>(code_of(print.dtype)) << 8 |
                                                  code_of(print.reduce),
                                              static_cast<std::uint64_t>(print.count),
                                              static_cast<std::uint64_t>(static_cast<std::int64_t>(print.root)),
                                              static_cast<std::uint64_t>(print.sequence),
                                              static_cast<std::uint64_t>(print.step),
                                              purpose.high,
                                              purpose.low};
  return digest_of(std::span<const std::uint64_t>(words));
}

std::string describe(const Fingerprint& print) {
  std::string text(to_string(print.op));
  if (print.dtype) text += fmt::format(" {}", to_string(*print.dtype));
  if (print.reduce) text += fmt::format(" {}", to_string(*print.reduce));
  if (print.root >= 0) text += fmt::format(" root {}", print.root);
  return text + fmt::format(" {}", print.purpose);
}

std::string differences(const Fingerprint& odd, const Fingerprint& usual) {
  std::string text;
  const auto tell = [&text](std::string_view field, const auto& own, const auto& other) {
    if (own == other) return;
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", field, own, other);
  };
  tell("operation", to_string(odd.op), to_string(usual.op));
  tell("purpose", odd.purpose, usual.purpose);
  tell("step", odd.step, usual.step);
  tell("sequence", odd.sequence, usual.sequence);
  // What only one operation has is no difference beside that of the operations.
  if (odd.op != usual.op) return text;
  tell("type", in_words(odd.dtype), in_words(usual.dtype));
  tell("count", odd.count, usual.count);
  tell("reduce operation", in_words(odd.reduce), in_words(usual.reduce));
  tell("root", odd.root, usual.root);
  return text;
}

Value encode(const Fingerprint& print) {
  constexpr std::size_t numbers = 64;  // and more than all of them take
  ByteWriter out;
  out.reserve(numbers + print.purpose.size());
  out.number(static_cast<std::uint8_t>(print.op)).number(code_of(print.dtype)).number(code_of(print.reduce));
  out.number(print.count).number(print.root).number(print.sequence).number(print.step).text(print.purpose);
  return Value::copy_of(DType::u8, Shape{static_cast<std::int64_t>(out.size())}, out.bytes());
}

std::optional<Fingerprint> decode_fingerprint(const Value& value) {
  if (!value || value.is_pack() || value.dtype() != DType::u8) return std::nullopt;
  ByteReader in(value.bytes());
  const auto op = in.number<std::uint8_t>();
  const auto dtype = in.number<std::uint8_t>();
  const auto reduce = in.number<std::uint8_t>();
  Fingerprint print;
  print.count = in.number<std::int64_t>();
  print.root = in.number<int>();
  print.sequence = in.number<std::int64_t>();
  print.step = in.number<std::int64_t>();
  print.purpose = in.text();
  const bool whole = in.ok() && in.at_end() && op < collective_op_count &&
                     (dtype == nothing || dtype <= static_cast<std::uint8_t>(DType::pack)) &&
                     (reduce == nothing || reduce <= static_cast<std::uint8_t>(ReduceOp::min));
  if (!whole) return std::nullopt;
  print.op = static_cast<CollectiveOp>(op);
  if (dtype != nothing) print.dtype = static_cast<DType>(dtype);
  if (reduce != nothing) print.reduce = static_cast<ReduceOp>(reduce);
  return print;
}

}  // namespace firedrill
