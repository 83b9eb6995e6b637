#include "engine/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "engine/base/text.h"

namespace firedrill {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<Unit, 6> durations = {{{"ns", 1},
                                            {"us", 1'000},
                                            {"ms", 1'000'000},
                                            {"s", 1'000'000'000},
                                            {"min", 60'000'000'000},
                                            {"h", 3'600'000'000'000}}};
constexpr std::array<Unit, 9> sizes = {{{"B", 1},
                                        {"kB", 1'000},
                                        {"KiB", 1LL << 10},
                                        {"MB", 1'000'000},
                                        {"MiB", 1LL << 20},
                                        {"GB", 1'000'000'000},
                                        {"GiB", 1LL << 30},
                                        {"TB", 1'000'000'000'000},
                                        {"TiB", 1LL << 40}}};

struct Quantity {
  std::string_view number;
  std::int64_t factor = 1;
};

std::optional<Quantity> split_unit(std::string_view text, std::span<const Unit> units) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  Quantity quantity{.number = text.substr(0, end)};
  if (quantity.number.empty() || quantity.number.front() == '.' || quantity.number.back() == '.') return std::nullopt;
  std::string_view name = end == std::string_view::npos ? std::string_view{} : text.substr(end);
  while (name.starts_with(' ')) name.remove_prefix(1);
  if (name.empty()) return quantity.number == "0" ? std::optional(quantity) : std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name == name) {
      quantity.factor = unit.factor;
      return quantity;
    }
  }
  return std::nullopt;
}

std::optional<double> decimal(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_count(std::string_view text, std::span<const Unit> units) {
  const auto quantity = split_unit(text, units);
  if (!quantity) return std::nullopt;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (const auto whole = parse_whole(quantity->number)) {
    if (*whole > static_cast<std::uint64_t>(most / quantity->factor)) return std::nullopt;
    return static_cast<std::int64_t>(*whole) * quantity->factor;
  }
  const auto number = decimal(quantity->number);
  if (!number) return std::nullopt;
  const double product = *number * static_cast<double>(quantity->factor);
  // Above 2^53 a double is not sure of its last digit.
  if (product > 9.0e15 || std::nearbyint(product) != product) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

std::string format_count(std::int64_t count, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (count != 0 && count % unit.factor == 0) best = &unit;
  }
  return fmt::format("{}{}", count / best->factor, best->name);
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto count = parse_count(text, durations);
  return count ? std::optional(std::chrono::nanoseconds(*count)) : std::nullopt;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) { return parse_count(text, sizes); }

std::optional<double> parse_bandwidth(std::string_view text) {
  if (!text.ends_with("/s")) return std::nullopt;
  text.remove_suffix(2);
  const auto quantity = split_unit(text, sizes);
  const auto number = quantity ? decimal(quantity->number) : std::nullopt;
  if (!number || !(*number > 0.0) || !std::isfinite(*number * static_cast<double>(quantity->factor))) {
    return std::nullopt;
  }
  return *number * static_cast<double>(quantity->factor);
}

std::string format_duration(std::chrono::nanoseconds duration) { return format_count(duration.count(), durations); }

std::string format_bytes(std::int64_t bytes) { return format_count(bytes, sizes); }

std::string format_bandwidth(double bytes_per_second) {
  for (const std::string_view name : {"TB", "GB", "MB", "kB"}) {
    for (const Unit& unit : sizes) {
      const double number = bytes_per_second / static_cast<double>(unit.factor);
      if (unit.name != name || number < 1.0) continue;
      std::string text = fmt::format("{}{}/s", number, name);
      if (parse_bandwidth(text) == bytes_per_second) return text;
    }
  }
  std::array<char, 512> digits{};  // shortest text that reads back the same, without an exponent
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), bytes_per_second, std::chars_format::fixed);
  return fmt::format("{}B/s", std::string_view(digits.data(), end));
}

}  // namespace firedrill
