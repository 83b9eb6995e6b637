// A layout from one word of a command line.
#include <algorithm>

#include "harness/scenario/fields.h"

namespace firedrill {

Loaded<Layout> parse_layout(std::string_view text, const std::string& origin) {
  const auto source = std::make_shared<const Source>(Source{.name = origin, .order = 1});
  Reader reader;
  Node root;
  root.kind = Node::Kind::mapping;
  root.place = {.source = source};
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    Entry entry;
    entry.key = part.substr(0, equals);
    entry.key_place = root.place;
    entry.value.kind = Node::Kind::scalar;
    entry.value.place = root.place;
    entry.value.text = equals == std::string::npos ? "true" : part.substr(equals + 1);
    const auto same = [&entry](const Entry& other) { return other.key == entry.key; };
    if (std::any_of(root.entries.begin(), root.entries.end(), same)) {
      reader.mistake(root.place, "", fmt::format("`{}` is given twice", entry.key));
    }
    root.entries.push_back(std::move(entry));
  }
  Layout layout;
  read_value(reader, root, "layout", layout);
  Loaded<Layout> result{.value = std::nullopt, .mistakes = {}};
  for (const Mistake& mistake : reader.mistakes()) result.mistakes.push_back(to_string(mistake));
  if (result.mistakes.empty()) result.value = layout;
  return result;
}

}  // namespace firedrill
