// JsonTree: a JSON text as a row of small values that refer to the text, for decoders that read many texts of programs.
// It reads only what programs write without need for more: no white space but one line end behind all, texts of plain
// characters without escapes, whole numbers from 0 on, lists and objects. Of any other text it says nothing, neither
// that it is JSON nor that it is not: a JSON library is to parse that, and a tree can be made of what that gives. So a
// decoder has one way to read values, and takes and refuses what it would with the library alone.
//
// It knows nothing of any format. Threads: a tree is immutable. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firedrill {

enum class JsonKind : std::uint8_t { none, other, whole, text, list, object };

namespace detail {

struct JsonNode {
  const char* text = nullptr;  // of a text, its characters
  std::uint64_t word = 0;      // of a whole number, the number; of a text, its size; of a list or an object, how many
  std::uint32_t nodes = 1;     // this one and all in it. In an object each value stands behind its key
  JsonKind kind = JsonKind::none;
};

inline constexpr JsonNode no_json_node;

}  // namespace detail

// A value of a tree, which must outlive it. What is asked of one of another kind is empty.
class JsonValue {
 public:
  JsonValue() = default;
  explicit JsonValue(const detail::JsonNode* node) : node_(node) {}

  bool is_whole() const { return node_->kind == JsonKind::whole; }  // from 0 to 2^64 - 1
  bool is_text() const { return node_->kind == JsonKind::text; }
  bool is_list() const { return node_->kind == JsonKind::list; }
  bool is_object() const { return node_->kind == JsonKind::object; }

  std::uint64_t whole() const { return is_whole() ? node_->word : 0; }
  std::string_view text() const { return is_text() ? std::string_view(node_->text, node_->word) : std::string_view(); }

  // Of an object; the last one, if several are called so, as JSON libraries take it.
  std::optional<JsonValue> member(std::string_view key) const;

  // The values of a list: for (const JsonValue value : list).
  std::size_t size() const { return is_list() ? node_->word : 0; }
  class Iterator {
   public:
    explicit Iterator(const detail::JsonNode* node) : node_(node) {}
    JsonValue operator*() const { return JsonValue(node_); }
    Iterator& operator++() {
      node_ += node_->nodes;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const detail::JsonNode* node_;
  };
  Iterator begin() const { return Iterator(node_ + 1); }
  Iterator end() const { return Iterator(is_list() ? node_ + node_->nodes : node_ + 1); }

 private:
  const detail::JsonNode* node_ = &detail::no_json_node;
};

class JsonTree {
 public:
  // Refers to `text`. Nothing: it holds more than is said above.
  static std::optional<JsonTree> of_plain(std::string_view text);

  // Of what a library has parsed, with the interface of nlohmann::json. What lies deeper than `depth_max` is `other`.
  template <class Parsed>
  static JsonTree of_parsed(const Parsed& parsed) {
    JsonTree tree;
    tree.add(parsed, 0);
    return tree;
  }

  JsonValue root() const { return JsonValue(nodes_.data()); }

  static constexpr int depth_max = 16;

 private:
  class PlainReader;

  template <class Parsed>
  void add(const Parsed& parsed, int depth) {
    if (parsed.is_string()) return add_text(parsed.template get_ref<const std::string&>());
    const std::size_t at = nodes_.size();
    nodes_.push_back({.kind = JsonKind::other});
    if (parsed.is_number_unsigned()) {
      nodes_[at] = {.word = parsed.template get<std::uint64_t>(), .kind = JsonKind::whole};
    } else if (parsed.is_array() && depth < depth_max) {
      for (const Parsed& value : parsed) add(value, depth + 1);
      close(at, JsonKind::list, parsed.size());
    } else if (parsed.is_object() && depth < depth_max) {
      for (const auto& [key, value] : parsed.items()) {
        add_text(key);
        add(value, depth + 1);
      }
      close(at, JsonKind::object, parsed.size());
    }
  }
  void add_text(const std::string& text) {
    const std::string& kept = kept_.emplace_front(text);
    nodes_.push_back({.text = kept.data(), .word = kept.size(), .kind = JsonKind::text});
  }
  void close(std::size_t at, JsonKind kind, std::size_t values) {
    nodes_[at] = {.word = values, .nodes = static_cast<std::uint32_t>(nodes_.size() - at), .kind = kind};
  }

  std::vector<detail::JsonNode> nodes_;
  std::forward_list<std::string> kept_;  // texts that stand in no text as they are
};

}  // namespace firedrill
