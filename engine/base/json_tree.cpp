#include "engine/base/json_tree.h"

#include <array>

namespace firedrill {
namespace {

// The characters that stand in a text for themselves alone.
constexpr std::array<bool, 256> plain = [] {
  std::array<bool, 256> table{};
  for (unsigned char c = ' '; c <= '~'; ++c) table[c] = c != '"' && c != '\\';
  return table;
}();

}  // namespace

std::optional<JsonValue> JsonValue::member(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  std::optional<JsonValue> found;
  const detail::JsonNode* const end = node_ + node_->nodes;
  for (const detail::JsonNode* at = node_ + 1; at < end;) {
    const detail::JsonNode* const value = at + 1;
    if (JsonValue(at).text() == key) found = JsonValue(value);
    at = value + value->nodes;
  }
  return found;
}

class JsonTree::PlainReader {
 public:
  PlainReader(std::string_view text, JsonTree& tree)
      : at_(text.data()), end_(text.data() + text.size()), tree_(tree), nodes_(tree.nodes_) {}

  bool read_all() {
    if (!read_value(0)) return false;
    if (at_ != end_ && *at_ == '\n') ++at_;
    return at_ == end_;
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool read_value(int depth) {
    if (at_ == end_) return false;
    switch (*at_) {
      case '"': return read_text();
      case '[': return depth < depth_max && read_list(depth);
      case '{': return depth < depth_max && read_object(depth);
      default: return read_whole();
    }
  }

  bool read_text() {
    if (!take('"')) return false;
    const char* at = at_;
    while (at != end_ && plain[static_cast<unsigned char>(*at)]) ++at;
    nodes_.push_back({.text = at_, .word = static_cast<std::uint64_t>(at - at_), .kind = JsonKind::text});
    at_ = at;
    return take('"');
  }

  // As JSON has it: no zero in front. Up to 19 digits, which fit.
  bool read_whole() {
    const char* const begin = at_;
    const char* at = at_;
    std::uint64_t number = 0;
    while (at != end_ && *at >= '0' && *at <= '9' && at - begin < 19) {
      number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
    }
    at_ = at;
    nodes_.push_back({.word = number, .kind = JsonKind::whole});
    return at_ != begin && (*begin != '0' || at_ - begin == 1);  // whatever follows it: it is no part of a list
  }

  bool read_list(int depth) {
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    std::size_t values = 0;
    take('[');
    if (!take(']')) {
      do {
        if (!read_value(depth + 1)) return false;
        ++values;
      } while (take(','));
      if (!take(']')) return false;
    }
    tree_.close(at, JsonKind::list, values);
    return true;
  }

  bool read_object(int depth) {
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    std::size_t values = 0;
    take('{');
    if (!take('}')) {
      do {
        if (!read_text() || !take(':') || !read_value(depth + 1)) return false;
        ++values;
      } while (take(','));
      if (!take('}')) return false;
    }
    tree_.close(at, JsonKind::object, values);
    return true;
  }

  const char* at_;
  const char* const end_;
  JsonTree& tree_;
  std::vector<detail::JsonNode>& nodes_;
};

std::optional<JsonTree> JsonTree::of_plain(std::string_view text) {
  JsonTree tree;
  tree.nodes_.reserve(text.size() / 8 + 1);  // a value takes up about that much; no text leads to more than its size
  if (!PlainReader(text, tree).read_all()) return std::nullopt;
  return tree;
}

}  // namespace firedrill
