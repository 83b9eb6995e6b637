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

[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& message);

}  // namespace firedrill

// FD_CHECK(condition, "format", values...)
#define FD_CHECK(condition, ...)                                                           \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::firedrill::fail_check(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
