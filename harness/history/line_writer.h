// The writing half of lines.h, line by line. No state of its own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/history/lines.h"

namespace firedrill {

std::string header_line();
// `result`: what a probe event's index is written as.
std::string event_line(const Event& event, const NameTable& names, std::int64_t result);
std::string state_line(const Digest& state, std::span<const NamedDigest> tensors);
std::string probe_line(std::int64_t index, const ProbeResult& result, const StateTable& states);

// Numbers that lines say in words. A value without a word is written, and read, as the number.
enum class Wording : std::uint8_t { none, view, operation, file_operation, failure };
Wording wording_of(std::string_view field);
std::string_view to_word(Wording wording, std::int64_t value);  // empty: no word
std::optional<std::int64_t> from_word(Wording wording, std::string_view word);

}  // namespace firedrill
