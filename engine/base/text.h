// Small helpers for text that people read or write.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firedrill {

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
// The same parts, inside `text`.
std::vector<std::string_view> split_in_place(std::string_view text, char separator);
// The candidate nearest to `word` by edit distance, if it is near enough to be meant ("did you mean ...?").
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
// Shell-style match of `*` and `?`.
bool matches_glob(std::string_view pattern, std::string_view text);
// A whole non-negative decimal number, or nothing.
std::optional<std::uint64_t> parse_whole(std::string_view text);

}  // namespace firedrill
