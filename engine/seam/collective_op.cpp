#include "engine/seam/collective_op.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace firedrill {
namespace {

// Takes a number off the front.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// "3", "0-3" or "0-6/2".
bool take_run(std::string_view& text, std::vector<int>& ranks) {
  const std::optional<int> first = take_number(text);
  if (!first) return false;
  std::optional<int> last = first;
  std::optional<int> stride = 1;
  if (take(text, '-')) last = take_number(text);
  if (take(text, '/')) stride = take_number(text);
  if (!last || !stride || *stride < 1) return false;
  for (int rank = *first; rank <= *last; rank += *stride) ranks.push_back(rank);
  return true;
}

}  // namespace

std::string_view to_string(CollectiveOp op) {
  constexpr std::array<std::string_view, collective_op_count> names = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "all_to_all", "send", "recv"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::max: return "max";
    case ReduceOp::min: return "min";
  }
  return "?";
}

std::string stream_of(const Group& group) {
  const std::vector<int>& ranks = group.ranks;
  std::string text = group.name + "[";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first + 1;
    const int stride = last < ranks.size() ? ranks[last] - ranks[first] : 1;
    while (last < ranks.size() && ranks[last] - ranks[last - 1] == stride) ++last;
    // Two ranks that are no neighbours are no run: the second may begin one.
    if (last - first == 2 && stride != 1) last = first + 1;
    text += fmt::format("{}{}", first == 0 ? "" : ",", ranks[first]);
    if (last - first > 1) text += fmt::format("-{}", ranks[last - 1]);
    if (last - first > 1 && stride != 1) text += fmt::format("/{}", stride);
    first = last;
  }
  return text + "]";
}

std::string stream_of(const Group& group, int from, int to) {
  const auto rank = [&group](int member) { return group.ranks[static_cast<std::size_t>(member)]; };
  return fmt::format("{}[{}>{}]", group.name, rank(from), rank(to));
}

std::vector<int> ranks_of_stream(std::string_view stream) {
  const std::size_t open = stream.find('[');
  if (open == std::string_view::npos || !stream.ends_with(']')) return {};
  std::string_view text = stream.substr(open + 1, stream.size() - open - 2);
  std::vector<int> ranks;
  do {
    if (!take_run(text, ranks)) return {};
  } while (take(text, ',') || take(text, '>'));
  return text.empty() ? ranks : std::vector<int>();
}

}  // namespace firedrill
