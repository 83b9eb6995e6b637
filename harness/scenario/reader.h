// Reading nodes into values, and writing values as JSON, from one list of fields a type: `visit(visitor, value)` in
// fields.h names each field once, and MappingReader and ObjectWriter are the two visitors.
//
// A Reader remembers where each path stands, so that a mistake found later ("layout.dp is 3 and does not divide ...")
// can be given its line.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "harness/scenario/tree.h"

namespace firedrill {

using Json = nlohmann::ordered_json;

class Reader {
 public:
  void mistake(const Place& place, const std::string& path, std::string message) {
    mistakes_.push_back({place, std::move(message)});
    bad_.insert(path);
  }
  void expected(const Node& node, const std::string& path, std::string_view what) {
    mistake(node.place, path, fmt::format("{} must be {}, not {}", path.empty() ? "this" : path, what, describe(node)));
  }
  void remember(const std::string& path, const Place& place) { places_[path] = place; }
  // The place of the path, or of the nearest one above it that is in the text.
  Place place_of(std::string path) const {
    while (!places_.contains(path) && !path.empty()) {
      const std::size_t end = path.find_last_of(".[");
      path = end == std::string::npos ? "" : path.substr(0, end);
    }
    const auto found = places_.find(path);
    return found == places_.end() ? Place{} : found->second;
  }
  // Whether there is a mistake at or below the path: then what follows from its value means nothing.
  bool is_bad(std::string_view path) const {
    for (const std::string& bad : bad_) {
      if (bad.starts_with(path) && (bad.size() == path.size() || bad[path.size()] == '.' || bad[path.size()] == '[')) {
        return true;
      }
    }
    return bad_.contains("");
  }
  std::vector<Mistake>& mistakes() { return mistakes_; }

 private:
  std::vector<Mistake> mistakes_;
  std::map<std::string, Place> places_;
  std::set<std::string, std::less<>> bad_;
};

// Names of an enumeration's values, as in files. Found by the type: `names_of(T{})`.
template <class T>
using Names = std::vector<std::pair<std::string, T>>;

template <class T>
concept Named = requires(T value) {
  { names_of(value) } -> std::same_as<Names<T>>;
};

void read_value(Reader& reader, const Node& node, const std::string& path, bool& value);
void read_value(Reader& reader, const Node& node, const std::string& path, double& value);
void read_value(Reader& reader, const Node& node, const std::string& path, std::string& value);

template <std::integral T>
void read_value(Reader& reader, const Node& node, const std::string& path, T& value) {
  T parsed{};
  const char* begin = node.text.data();
  const char* end = begin + node.text.size();
  const auto [stop, error] = std::from_chars(begin, end, parsed);
  if (node.kind != Node::Kind::scalar || node.quoted || stop != end || error == std::errc::invalid_argument) {
    reader.expected(node, path, "a whole number");
  } else if (error != std::errc{}) {
    reader.expected(node, path, fmt::format("a whole number up to {}", std::numeric_limits<T>::max()));
  } else {
    value = parsed;
  }
}

template <Named T>
void read_value(Reader& reader, const Node& node, const std::string& path, T& value) {
  std::vector<std::string> choices;
  for (const auto& [name, named] : names_of(T{})) {
    if (node.kind == Node::Kind::scalar && node.text == name) {
      value = named;
      return;
    }
    choices.push_back(name);
  }
  const auto near = node.kind == Node::Kind::scalar ? nearest(node.text, choices) : std::nullopt;
  reader.expected(
      node, path,
      fmt::format("one of {}{}", join(choices, ", "), near ? fmt::format(" (did you mean `{}`?)", *near) : ""));
}

// Declared ahead of the visitors, which meet them with types that are not of this namespace.
template <class T>
void read_value(Reader& reader, const Node& node, const std::string& path, std::optional<T>& value);
template <class T>
void read_value(Reader& reader, const Node& node, const std::string& path, std::vector<T>& value);
template <class T>
Json write_value(const std::optional<T>& value);
template <class T>
Json write_value(const std::vector<T>& value);

class MappingReader {
 public:
  MappingReader(Reader& reader, const Node& node, std::string path)
      : reader_(reader), node_(node), path_(std::move(path)) {
    if (node.kind != Node::Kind::mapping && node.kind != Node::Kind::null) reader_.expected(node, path_, "a mapping");
  }

  // `left_out` concerns writing only.
  template <class T>
  void field(std::string_view key, T&& value, bool /*left_out*/ = false) {
    keys_.emplace_back(key);
    if (const Node* node = node_.find(key)) {
      const std::string path = below(key);
      reader_.remember(path, node->place);
      read_value(reader_, *node, path, value);
    }
  }
  template <class T>
  void required(std::string_view key, T&& value) {
    field(key, std::forward<T>(value));
    const bool is_mapping = node_.kind == Node::Kind::mapping || node_.kind == Node::Kind::null;
    if (is_mapping && node_.find(key) == nullptr) {
      reader_.mistake(node_.place, below(key), fmt::format("missing key `{}`{}", key, in()));
    }
  }
  // A key that is read elsewhere.
  void known(std::string_view key) { keys_.emplace_back(key); }
  // To be called last: complains of keys that no field has.
  void finish() {
    for (const Entry& entry : node_.entries) {
      if (std::find(keys_.begin(), keys_.end(), entry.key) != keys_.end()) continue;
      const auto near = nearest(entry.key, keys_);
      reader_.mistake(entry.key_place, path_,
                      fmt::format("unknown key `{}`{}: {}", entry.key, in(),
                                  near ? fmt::format("did you mean `{}`?", *near)
                                       : fmt::format("the keys are {}", join(keys_, ", "))));
    }
  }

  Reader& reader() { return reader_; }
  const Node& node() const { return node_; }
  const std::string& path() const { return path_; }

 private:
  std::string below(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  std::string in() const { return path_.empty() ? "" : fmt::format(" in {}", path_); }

  Reader& reader_;
  const Node& node_;
  std::string path_;
  std::vector<std::string> keys_;
};

class ObjectWriter;

template <class T>
concept Record = requires(MappingReader& reader, T& value) {
  visit(reader, value);
};

template <Record T>
void read_value(Reader& reader, const Node& node, const std::string& path, T& value) {
  MappingReader mapping(reader, node, path);
  visit(mapping, value);
  mapping.finish();
}

template <class T>
void read_value(Reader& reader, const Node& node, const std::string& path, std::optional<T>& value) {
  if (node.kind == Node::Kind::null) return;
  T read{};
  read_value(reader, node, path, read);
  value = std::move(read);
}

template <class T>
void read_value(Reader& reader, const Node& node, const std::string& path, std::vector<T>& value) {
  if (node.kind == Node::Kind::null) return;
  if (node.kind != Node::Kind::sequence) return reader.expected(node, path, "a sequence");
  value.clear();  // a default
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_path = fmt::format("{}[{}]", path, i);
    reader.remember(item_path, node.items[i].place);
    read_value(reader, node.items[i], item_path, value.emplace_back());
  }
}

inline Json write_value(bool value) { return value; }
inline Json write_value(double value) { return value; }
inline Json write_value(const std::string& value) { return value; }
template <std::integral T>
Json write_value(T value) {
  return value;
}
template <Named T>
Json write_value(T value) {
  for (const auto& [name, named] : names_of(T{})) {
    if (named == value) return name;
  }
  return nullptr;
}

class ObjectWriter {
 public:
  template <class T>
  void field(std::string_view key, T&& value, bool left_out = false) {
    if (left_out) return;
    Json written = write_value(value);
    if (!written.is_null()) json_[std::string(key)] = std::move(written);
  }
  template <class T>
  void required(std::string_view key, T&& value) {
    field(key, std::forward<T>(value));
  }
  void known(std::string_view) {}
  void finish() {}
  Json& json() { return json_; }

 private:
  Json json_ = Json::object();
};

template <Record T>
Json write_value(const T& value) {
  ObjectWriter writer;
  T copy = value;  // one list of fields serves both directions, so it speaks of fields that can be set
  visit(writer, copy);
  return std::move(writer.json());
}
template <class T>
Json write_value(const std::optional<T>& value) {
  return value ? write_value(*value) : Json();
}
template <class T>
Json write_value(const std::vector<T>& value) {
  Json array = Json::array();
  for (const T& item : value) array.push_back(write_value(item));
  return array;
}

}  // namespace firedrill
