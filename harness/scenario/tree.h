// Tree: YAML or JSON text as nodes that know where they stand, so that every later mistake can name line and column.
//
// Only what files of ours need: mappings with text keys, sequences, scalars. Anchors, aliases and tags are mistakes
// (an alias can make a small file mean a huge one), and so are duplicate keys, tabs in the indentation, a second
// document and a file above 1 MiB.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace firedrill {

// Where text came from: a file, or an argument such as "--set job.steps=8".
struct Source {
  std::string name;
  std::filesystem::path directory = {};  // paths in the text are relative to it
  int order = 0;                         // mistakes are listed by it
};

struct Place {
  std::shared_ptr<const Source> source;
  int line = 0;  // from 1; 0: the source has no lines
  int column = 0;
};
std::string to_string(const Place& place);  // "file:3:5"

struct Entry;

struct Node {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  std::string text = {};         // of a scalar
  bool quoted = false;           // so a text, whatever it looks like
  std::vector<Node> items = {};  // of a sequence
  // Of a mapping, in the order of the text, keys unique. Without a default: Entry is not complete here.
  std::vector<Entry> entries;
  Place place = {};

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  Place key_place;
  Node value;
};

// "a mapping", "the text \"abc\"", "a sequence", "nothing".
std::string describe(const Node& node);

struct Mistake {
  Place place;
  std::string message;
};
std::string to_string(const Mistake& mistake);

// Mistakes are added to `mistakes`; what could be read is returned, so that the rest can be checked too.
Node parse_yaml(std::string_view text, const std::shared_ptr<const Source>& source, std::vector<Mistake>& mistakes);
// From parsed JSON: places have no lines.
Node from_json(const nlohmann::ordered_json& json, const std::shared_ptr<const Source>& source);

// Puts `value` at `path` ("checkpoint.every", "faults.0.at.step"), making mappings on the way where there is nothing.
void set_at(Node& root, std::string_view path, Node value, std::vector<Mistake>& mistakes);

// JSON as YAML text: a key a line at the top and in sequences of mappings, `{a: 1, b: 2}` below.
std::string to_yaml(const nlohmann::ordered_json& json);

}  // namespace firedrill
