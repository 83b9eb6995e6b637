// Count: a whole number of any size, for counting crash states (64 ranks with three shards each: 3e162). Only what
// counting needs: add, multiply, compare, print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firedrill::crash {

class Count {
 public:
  Count() = default;           // 0
  Count(std::uint64_t value);  // NOLINT(google-explicit-constructor): a number is a number

  Count& operator+=(const Count& other);
  Count& operator*=(const Count& other);
  friend Count operator+(Count a, const Count& b) { return a += b; }
  friend Count operator*(Count a, const Count& b) { return a *= b; }
  bool operator==(const Count&) const = default;
  bool operator<(const Count& other) const;

  std::string to_string() const;  // all decimal digits
  // "3418801", or above 15 digits "3.02e162".
  std::string to_short_string() const;
  double to_double() const;  // infinite above 1.8e308

 private:
  std::vector<std::uint32_t> digits_;  // base 1e9, lowest first, no leading zeros
};

}  // namespace firedrill::crash
