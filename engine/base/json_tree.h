// JsonTree: a JSON text as simdjson reads it (https://simdjson.org), for decoders that trust nothing: what is asked of
// a value that is of another kind, or is not there, is empty.
//
// It knows nothing of any format. Threads: a tree is immutable. Errors: none; a text has no tree if it is not JSON,
// holds a number that neither 64 bits nor a double can, begins with a byte order mark, or is nested deeper than 1,024.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace firedrill {

// A value of a tree. The tree must outlive its values and their texts.
class JsonValue {
 public:
  JsonValue() = default;
  explicit JsonValue(simdjson::dom::element element) : element_(element) {}

  bool is_whole() const { return as<std::uint64_t>().has_value(); }  // from 0 to 2^64 - 1
  bool is_text() const { return as<std::string_view>().has_value(); }
  bool is_list() const { return as<simdjson::dom::array>().has_value(); }
  bool is_object() const { return as<simdjson::dom::object>().has_value(); }

  std::uint64_t whole() const { return as<std::uint64_t>().value_or(0); }
  std::string_view text() const { return as<std::string_view>().value_or(std::string_view()); }

  // Of an object; the last one, if several are called so, as most JSON libraries take it.
  std::optional<JsonValue> member(std::string_view key) const {
    std::optional<JsonValue> found;
    if (const auto object = as<simdjson::dom::object>()) {
      for (const auto field : *object) {
        if (field.key == key) found = JsonValue(field.value);
      }
    }
    return found;
  }

  // The values of a list: for (const JsonValue value : list). Of a list of more than 2^24 - 1 the size is that.
  std::size_t size() const {
    const auto list = as<simdjson::dom::array>();
    return list ? list->size() : 0;
  }
  class Iterator {
   public:
    explicit Iterator(std::optional<simdjson::dom::array::iterator> at) : at_(at) {}
    JsonValue operator*() const { return JsonValue(**at_); }
    Iterator& operator++() {
      ++*at_;
      return *this;
    }
    bool operator==(const Iterator& other) const {
      if (!at_ || !other.at_) return !at_ && !other.at_;
      return !(*at_ != *other.at_);
    }

   private:
    std::optional<simdjson::dom::array::iterator> at_;  // of what is no list: none
  };
  Iterator begin() const {
    const auto list = as<simdjson::dom::array>();
    return Iterator(list ? std::optional(list->begin()) : std::nullopt);
  }
  Iterator end() const {
    const auto list = as<simdjson::dom::array>();
    return Iterator(list ? std::optional(list->end()) : std::nullopt);
  }

 private:
  template <class T>
  std::optional<T> as() const {
    T value;
    if (!element_ || element_->get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  }

  std::optional<simdjson::dom::element> element_;
};

class JsonTree {
 public:
  // The text need not stay. Nothing: see above.
  static std::optional<JsonTree> of(std::string_view text) {
    JsonTree tree;
    simdjson::dom::element root;
    if (tree.parser_->parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
    tree.root_ = JsonValue(root);
    return tree;
  }

  JsonValue root() const { return root_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();  // holds all values
  JsonValue root_;
};

}  // namespace firedrill
