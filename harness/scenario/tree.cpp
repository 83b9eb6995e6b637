#include "harness/scenario/tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/text.h"

namespace firedrill {
namespace {

constexpr std::size_t text_size_max = 1 << 20;

// Builds the tree from the parser's events. A stack of open collections; a mapping alternates keys and values.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const Source> source, std::vector<Mistake>& mistakes)
      : source_(std::move(source)), mistakes_(mistakes) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "?", anchor);
    add(Node{.place = at(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    mistakes_.push_back({at(mark), "an alias (`*name`) is not supported: write the value out"});
    add(Node{.place = at(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    add(Node{.kind = Node::Kind::scalar, .text = value, .quoted = tag == "!", .place = at(mark)});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    open_.push_back({.node = Node{.kind = Node::Kind::sequence, .place = at(mark)}});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    open_.push_back({.node = Node{.kind = Node::Kind::mapping, .place = at(mark)}});
  }
  void OnMapEnd() override { close(); }

  Node take() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    bool has_key = false;
    Entry entry = {};
  };

  Place at(const YAML::Mark& mark) const {
    return {.source = source_, .line = mark.line + 1, .column = mark.column + 1};
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) mistakes_.push_back({at(mark), "an anchor (`&name`) is not supported: write the value out"});
    if (!tag.empty() && tag != "?" && tag != "!") {
      mistakes_.push_back({at(mark), fmt::format("the tag `{}` is not supported: leave it out", tag)});
    }
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node.kind == Node::Kind::sequence) {
      top.node.items.push_back(std::move(node));
    } else if (!top.has_key) {
      if (node.kind != Node::Kind::scalar) {
        mistakes_.push_back({node.place, fmt::format("a key must be text, not {}", firedrill::describe(node))});
      }
      top.entry = Entry{.key = node.text, .key_place = node.place, .value = {}};
      top.has_key = true;
    } else {
      top.has_key = false;
      top.entry.value = std::move(node);
      if (const Node* first = top.node.find(top.entry.key)) {
        mistakes_.push_back({top.entry.key_place, fmt::format("duplicate key `{}`: it is already given in line {}",
                                                              top.entry.key, first->place.line)});
      } else {
        top.node.entries.push_back(std::move(top.entry));
      }
    }
  }

  std::shared_ptr<const Source> source_;
  std::vector<Mistake>& mistakes_;
  std::vector<Open> open_;
  Node root_;
};

// The parser stops at its first error, so tabs, the commonest one, are all found before it runs.
void find_tabs(std::string_view text, const std::shared_ptr<const Source>& source, std::vector<Mistake>& mistakes) {
  int line = 1;
  for (const std::string& row : split(text, '\n')) {
    const std::size_t end = row.find_first_not_of(" \t");
    const std::size_t tab = row.substr(0, end).find('\t');
    if (tab != std::string::npos && end != std::string::npos && row[end] != '#') {
      mistakes.push_back({{.source = source, .line = line, .column = static_cast<int>(tab) + 1},
                          "a tab in the indentation: indent with spaces"});
    }
    ++line;
  }
}

bool is_plain(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.front() == '-') return false;
  if (text == "null" || text == "Null" || text == "NULL" || text == "~") return false;
  for (const char c : text) {
    if (!(std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_./+- ").find(c) < 6)) return false;
  }
  return true;
}

std::string flow(const nlohmann::ordered_json& json) {
  std::string text;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", is_plain(key) ? key : flow(key), flow(value));
    }
    return "{" + text + "}";
  }
  if (json.is_array()) {
    for (const auto& item : json) text += fmt::format("{}{}", text.empty() ? "" : ", ", flow(item));
    return "[" + text + "]";
  }
  if (json.is_string() && is_plain(json.get_ref<const std::string&>())) return json.get<std::string>();
  return json.dump();
}

}  // namespace

std::string to_string(const Place& place) {
  const std::string name = place.source ? place.source->name : "?";
  return place.line > 0 ? fmt::format("{}:{}:{}", name, place.line, place.column) : name;
}

std::string to_string(const Mistake& mistake) {
  return fmt::format("{}: {}", to_string(mistake.place), mistake.message);
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::sequence: return "a sequence";
    case Node::Kind::mapping: return "a mapping";
    case Node::Kind::scalar: break;
  }
  const std::string shown = node.text.size() > 60 ? node.text.substr(0, 60) + "..." : node.text;
  return node.quoted ? fmt::format("the text \"{}\"", shown) : fmt::format("`{}`", shown);
}

Node parse_yaml(std::string_view text, const std::shared_ptr<const Source>& source, std::vector<Mistake>& mistakes) {
  const Place start{.source = source, .line = 1, .column = 1};
  if (text.size() > text_size_max) {
    mistakes.push_back(
        {start, fmt::format("{} bytes are too many for a file of ours (at most {})", text.size(), text_size_max)});
    return Node{.place = start};
  }
  if (text.find('\0') != std::string_view::npos) {
    mistakes.push_back({start, "not a text file: it has a zero byte"});
    return Node{.place = start};
  }
  const std::size_t before = mistakes.size();
  find_tabs(text, source, mistakes);
  if (mistakes.size() > before) return Node{.place = start};
  Builder builder(source, mistakes);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Node{.place = start};
    Builder rest(source, mistakes);
    if (parser.HandleNextDocument(rest)) {
      mistakes.push_back({rest.take().place, "a second document (`---`): one file holds one"});
    }
  } catch (const YAML::Exception& error) {
    mistakes.push_back({{.source = source, .line = error.mark.line + 1, .column = error.mark.column + 1},
                        fmt::format("not YAML from here: {}", error.msg)});
  }
  Node root = builder.take();
  if (!root.place.source) root.place = start;
  return root;
}

Node from_json(const nlohmann::ordered_json& json, const std::shared_ptr<const Source>& source) {
  Node node{.place = {.source = source}};
  if (json.is_object()) {
    node.kind = Node::Kind::mapping;
    for (const auto& [key, value] : json.items()) node.entries.push_back({key, node.place, from_json(value, source)});
  } else if (json.is_array()) {
    node.kind = Node::Kind::sequence;
    for (const auto& item : json) node.items.push_back(from_json(item, source));
  } else if (!json.is_null()) {
    node.kind = Node::Kind::scalar;
    node.quoted = json.is_string();
    node.text = json.is_string() ? json.get<std::string>() : json.dump();
  }
  return node;
}

void set_at(Node& root, std::string_view path, Node value, std::vector<Mistake>& mistakes) {
  Node* node = &root;
  for (const std::string& key : split(path, '.')) {
    if (node->kind == Node::Kind::sequence) {
      const auto index = parse_whole(key);
      if (!index || *index >= node->items.size()) {
        mistakes.push_back({value.place, fmt::format("`{}` in `{}` must be a number below {}: it is an index of a "
                                                     "sequence",
                                                     key, path, node->items.size())});
        return;
      }
      node = &node->items[*index];
      continue;
    }
    if (node->kind == Node::Kind::null) *node = Node{.kind = Node::Kind::mapping, .place = value.place};
    if (node->kind != Node::Kind::mapping || key.empty()) {
      mistakes.push_back(
          {value.place, fmt::format("`{}` names nothing: `{}` is below {}", path, key, describe(*node))});
      return;
    }
    if (node->find(key) == nullptr) node->entries.push_back({key, value.place, Node{.place = value.place}});
    node = node->find(key);
  }
  *node = std::move(value);
}

std::string to_yaml(const nlohmann::ordered_json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_array() || value.empty()) {
      text += fmt::format("{}: {}\n", key, flow(value));
      continue;
    }
    text += fmt::format("{}:\n", key);
    for (const auto& item : value) text += fmt::format("  - {}\n", flow(item));
  }
  return text;
}

}  // namespace firedrill
