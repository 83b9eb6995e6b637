#include "faults/persistence/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

namespace firedrill::crash {

namespace {

using nlohmann::json;
constexpr std::string_view schema = "firedrill.trace/1";
constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr int code_count = static_cast<int>(Code::internal) + 1;

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += hex_digits[std::to_integer<std::size_t>(byte) >> 4U];
    text += hex_digits[std::to_integer<std::size_t>(byte) & 15U];
  }
  return text;
}

std::optional<Value> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  MutableValue value(DType::u8, Shape{static_cast<std::int64_t>(text.size() / 2)});
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = hex_digits.find(text[i]);
    const std::size_t low = hex_digits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    value.bytes()[i / 2] = static_cast<std::byte>(high * 16 + low);
  }
  return std::move(value).freeze();
}

template <class Enum, class Name>
std::optional<Enum> from_name(std::string_view name, int count, const Name& to_name) {
  for (int i = 0; i < count; ++i) {
    if (to_name(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}

  void write(const Trace& trace) {
    json head = {{"schema", schema}};
    if (!trace.owner.empty()) head["owner"] = trace.owner;
    line(head);
    for (const BaseEntry& entry : trace.base) {
      json fields = {{"base", entry.path}, {"inode", entry.inode}};
      fields["kind"] = entry.kind == FileKind::file ? "file" : "directory";
      if (entry.kind == FileKind::file) fields["bytes"] = bytes(entry.bytes);
      line(fields);
    }
    for (std::size_t i = 0; i < trace.programs.size(); ++i) {
      const Program& program = trace.programs[i];
      line({{"program", i},
            {"attempt", program.attempt},
            {"rank", program.rank},
            {"node", program.node},
            {"task", program.task}});
    }
    for (std::size_t i = 0; i < trace.operations.size(); ++i) write(i, trace.operations[i]);
  }

 private:
  void line(const json& fields) { out_ << fields.dump() << '\n'; }

  std::string bytes(const Value& value) {
    const Value content = value ? value.as_bytes() : Value::copy_of(std::string_view());
    const Digest digest = content.digest();
    if (written_.insert(digest).second) line({{"bytes", digest.hex()}, {"hex", to_hex(content.bytes())}});
    return digest.hex();
  }

  void write(std::size_t id, const Operation& operation) {
    json fields = {{"operation", id}, {"kind", to_string(operation.kind)}, {"program", operation.program}};
    if (operation.step != 0) fields["step"] = operation.step;
    if (operation.phase != Phase::none) fields["phase"] = to_string(operation.phase);
    if (!operation.after.empty()) fields["after"] = operation.after;
    if (operation.error) fields["error"] = to_string(*operation.error);
    switch (operation.kind) {
      case OperationKind::file:
        fields["op"] = to_string(operation.op);
        fields["path"] = operation.path;
        if (!operation.second.empty()) fields["second"] = operation.second;
        if (operation.inode != no_inode) fields["inode"] = operation.inode;
        if (operation.op != FileOp::write) break;
        fields["offset"] = operation.offset;
        fields["bytes"] = bytes(operation.bytes);
        break;
      case OperationKind::acknowledged: fields["state"] = operation.state.hex(); [[fallthrough]];
      case OperationKind::committed: fields["checkpoint"] = to_string(operation.checkpoint); break;
      case OperationKind::node_died:
        fields["node"] = operation.node;
        fields["lost"] = json::array();
        for (const LostItem& item : operation.lost) {
          fields["lost"].push_back({{"operation", item.operation}, {"second", item.second}});
        }
        break;
    }
    line(fields);
  }

  std::ostream& out_;
  std::set<Digest> written_;
};

// Fields are asked for by name and type; what is not as it must be throws, and the line is reported.
struct Bad {
  std::string what;
};

class Reader {
 public:
  void add(const std::string& text) {
    const json fields = json::parse(text);
    if (fields.contains("base")) {
      add_base(fields);
    } else if (fields.contains("operation")) {
      add_operation(fields);
    } else if (fields.contains("program")) {
      if (fields.at("program").get<std::size_t>() != trace_.programs.size()) throw Bad{"programs are not in order"};
      trace_.programs.push_back({fields.at("attempt"), fields.at("rank"), fields.at("node"), fields.at("task")});
    } else {
      add_bytes(fields);
    }
  }
  void add_owner(const json& head) { trace_.owner = head.value("owner", std::string()); }
  Trace finish() && { return std::move(trace_); }

 private:
  void add_bytes(const json& fields) {
    const std::string name = fields.at("bytes");
    std::optional<Value> value = from_hex(fields.at("hex").get<std::string>());
    if (!value || value->digest().hex() != name) throw Bad{fmt::format("the bytes are not those of {}", name)};
    bytes_[name] = *std::move(value);
  }

  Value bytes(const json& fields) const {
    const auto found = bytes_.find(fields.at("bytes").get<std::string>());
    if (found == bytes_.end()) throw Bad{"bytes that were not given before"};
    return found->second;
  }

  void add_base(const json& fields) {
    BaseEntry entry{.path = fields.at("base"), .inode = fields.at("inode")};
    entry.kind = fields.at("kind") == "file" ? FileKind::file : FileKind::directory;
    if (entry.kind == FileKind::file) entry.bytes = bytes(fields);
    trace_.base.push_back(std::move(entry));
  }

  template <class T>
  static T need(const std::optional<T>& value, std::string_view field) {
    if (!value) throw Bad{fmt::format("no such {}", field)};
    return *value;
  }

  void add_operation(const json& fields) {
    if (fields.at("operation").get<std::size_t>() != trace_.operations.size()) {
      throw Bad{"operations are not in order"};
    }
    Operation operation;
    operation.kind = need(operation_kind_from(fields.at("kind").get<std::string>()), "kind");
    operation.program = fields.at("program");
    if (operation.program >= trace_.programs.size()) throw Bad{"a program that was not given before"};
    operation.step = fields.value("step", std::int64_t{0});
    if (fields.contains("phase")) operation.phase = need(phase_from(fields.at("phase").get<std::string>()), "phase");
    operation.after = fields.value("after", std::vector<OperationId>());
    for (const OperationId earlier : operation.after) {
      if (earlier >= trace_.operations.size()) throw Bad{"it comes after a later operation"};
    }
    if (fields.contains("error")) {
      operation.error = need(
          from_name<Code>(fields.at("error").get<std::string>(), code_count, [](Code code) { return to_string(code); }),
          "error");
    }
    if (operation.kind == OperationKind::file) add_file_fields(fields, operation);
    if (operation.kind == OperationKind::acknowledged) {
      operation.state = need(Digest::from_hex(fields.at("state").get<std::string>()), "state");
    }
    if (fields.contains("checkpoint")) {
      operation.checkpoint = need(checkpoint_id_from(fields.at("checkpoint").get<std::string>()), "checkpoint");
    }
    if (operation.kind == OperationKind::node_died) {
      operation.node = fields.at("node");
      for (const json& item : fields.at("lost")) operation.lost.push_back({item.at("operation"), item.at("second")});
    }
    trace_.operations.push_back(std::move(operation));
  }

  void add_file_fields(const json& fields, Operation& operation) const {
    operation.op = need(
        from_name<FileOp>(fields.at("op").get<std::string>(), file_op_count, [](FileOp op) { return to_string(op); }),
        "op");
    operation.path = fields.at("path");
    operation.second = fields.value("second", std::string());
    operation.inode = fields.value("inode", no_inode);
    if (operation.op != FileOp::write) return;
    operation.offset = fields.at("offset");
    operation.bytes = bytes(fields);
  }

  Trace trace_;
  std::map<std::string, Value> bytes_;
};

}  // namespace

void write_trace(std::ostream& out, const Trace& trace) { Writer(out).write(trace); }

Result<Trace> read_trace(std::istream& in) {
  Reader reader;
  std::string text;
  std::int64_t line = 1;
  for (; std::getline(in, text); ++line) {
    std::string wrong;
    try {
      if (line > 1) {
        reader.add(text);
        continue;
      }
      const json head = json::parse(text);
      const std::string found = head.at("schema");
      if (found == schema) {
        reader.add_owner(head);
        continue;
      }
      return Error{.code = Code::mismatch,
                   .message = fmt::format("this is a {}, not a {}", found, schema),
                   .hint = "record the run again"};
    } catch (const Bad& bad) {
      wrong = bad.what;
    } catch (const json::exception& error) {
      wrong = error.what();
    }
    return Error{.code = Code::corrupted, .message = fmt::format("line {} of the trace: {}", line, wrong)};
  }
  if (line == 1) return Error{.code = Code::corrupted, .message = "the trace is empty"};
  return std::move(reader).finish();
}

}  // namespace firedrill::crash
