#include "faults/persistence/count.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace firedrill::crash {

namespace {

constexpr std::uint64_t base = 1'000'000'000;

}  // namespace

Count::Count(std::uint64_t value) {
  for (; value > 0; value /= base) digits_.push_back(static_cast<std::uint32_t>(value % base));
}

Count& Count::operator+=(const Count& other) {
  digits_.resize(std::max(digits_.size(), other.digits_.size()));
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < digits_.size(); ++i) {
    carry += digits_[i];
    if (i < other.digits_.size()) carry += other.digits_[i];
    digits_[i] = static_cast<std::uint32_t>(carry % base);
    carry /= base;
  }
  if (carry > 0) digits_.push_back(static_cast<std::uint32_t>(carry));
  return *this;
}

Count& Count::operator*=(const Count& other) {
  std::vector<std::uint32_t> product(digits_.size() + other.digits_.size());
  for (std::size_t i = 0; i < digits_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < other.digits_.size() || carry > 0; ++j) {
      carry += product[i + j];
      if (j < other.digits_.size()) carry += std::uint64_t{digits_[i]} * other.digits_[j];
      product[i + j] = static_cast<std::uint32_t>(carry % base);
      carry /= base;
    }
  }
  while (!product.empty() && product.back() == 0) product.pop_back();
  digits_ = std::move(product);
  return *this;
}

bool Count::operator<(const Count& other) const {
  if (digits_.size() != other.digits_.size()) return digits_.size() < other.digits_.size();
  return std::lexicographical_compare(digits_.rbegin(), digits_.rend(), other.digits_.rbegin(), other.digits_.rend());
}

std::string Count::to_string() const {
  if (digits_.empty()) return "0";
  std::string text = fmt::format("{}", digits_.back());
  for (std::size_t i = digits_.size() - 1; i-- > 0;) text += fmt::format("{:09}", digits_[i]);
  return text;
}

std::string Count::to_short_string() const {
  const std::string all = to_string();
  if (all.size() <= 15) return all;
  return fmt::format("{}.{}e{}", all.substr(0, 1), all.substr(1, 2), all.size() - 1);
}

double Count::to_double() const { return std::strtod(to_string().c_str(), nullptr); }

}  // namespace firedrill::crash
