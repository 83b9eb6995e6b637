// FD_CHECK: our own bugs. Always on. A failed check throws CheckFailure, which nothing but the outermost frame catches:
// a rank's main (the rank dies, and that is a finding, exit 2) or the command line (exit 4). It is never used to judge
// input; that is what Result is for.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace firedrill {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn, gnu::cold]] void fail_check(const char* file, int line, const char* condition, const std::string& message);

// The same with a message still to be made: one call where a check stands, so that the function around it stays small
// enough to be inlined. Values come as copies: one whose address is taken could not stay in a register.
template <class... T>
[[noreturn, gnu::cold, gnu::noinline]] void fail_check_of(const char* file, int line, const char* condition,
                                                          fmt::format_string<T...> format, T... values) {
  fail_check(file, line, condition, fmt::vformat(fmt::string_view(format), fmt::make_format_args(values...)));
}

}  // namespace firedrill

// FD_CHECK(condition, "format", values...)
#define FD_CHECK(condition, ...)                                               \
  do {                                                                         \
    if (!(condition)) [[unlikely]]                                             \
      ::firedrill::fail_check_of(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (false)
