#include "harness/scenario/reader.h"

namespace firedrill {

void read_value(Reader& reader, const Node& node, const std::string& path, bool& value) {
  if (node.kind == Node::Kind::scalar && !node.quoted && (node.text == "true" || node.text == "false")) {
    value = node.text == "true";
  } else {
    reader.expected(node, path, "true or false");
  }
}

void read_value(Reader& reader, const Node& node, const std::string& path, double& value) {
  double parsed = 0.0;
  const char* begin = node.text.data();
  const char* end = begin + node.text.size();
  const auto [stop, error] = std::from_chars(begin, end, parsed);
  if (node.kind == Node::Kind::scalar && !node.quoted && stop == end && error == std::errc{} && std::isfinite(parsed)) {
    value = parsed;
  } else {
    reader.expected(node, path, "a number");
  }
}

void read_value(Reader& reader, const Node& node, const std::string& path, std::string& value) {
  if (node.kind == Node::Kind::scalar && !node.text.empty()) {
    value = node.text;
  } else {
    reader.expected(node, path, "a text");
  }
}

}  // namespace firedrill
