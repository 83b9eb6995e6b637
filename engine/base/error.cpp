#include "engine/base/error.h"

#include <fmt/format.h>

namespace firedrill {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::dead: return "dead";
    case Code::fenced: return "fenced";
    case Code::aborted: return "aborted";
    case Code::timeout: return "timeout";
    case Code::not_found: return "not_found";
    case Code::already_exists: return "already_exists";
    case Code::io_error: return "io_error";
    case Code::no_space: return "no_space";
    case Code::corrupted: return "corrupted";
    case Code::mismatch: return "mismatch";
    case Code::invalid_input: return "invalid_input";
    case Code::unavailable: return "unavailable";
    case Code::internal: return "internal";
  }
  return "internal";
}

std::string describe(const Error& error) {
  std::string text = fmt::format("{}: {}", to_string(error.code), error.message);
  if (!error.hint.empty()) text += fmt::format(" (hint: {})", error.hint);
  if (error.injected) text += " [injected]";
  return text;
}

}  // namespace firedrill
