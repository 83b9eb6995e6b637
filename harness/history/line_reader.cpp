#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/history/line_writer.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

Error bad(std::string message) { return {.code = Code::invalid_input, .message = std::move(message)}; }

// Reads fields of one line; the first mistake is kept and the rest then reads as absent.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  std::int64_t number(std::string_view field, std::string_view general, std::int64_t otherwise = 0) {
    const Json* value = find(field, general);
    if (!value) return otherwise;
    if (value->is_number_unsigned() &&
        value->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return value->get<std::int64_t>();
    }
    if (value->is_number_integer() && !value->is_number_unsigned()) return value->get<std::int64_t>();
    if (value->is_string()) {
      const auto word = from_word(wording_of(field), value->get_ref<const std::string&>());
      if (word) return *word;
    }
    mistake(field, *value, "a whole number or a word that is known here");
    return otherwise;
  }

  std::int64_t number_within(std::string_view field, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
    const std::int64_t value = number(field, {}, otherwise);
    if (value >= low && value <= high) return value;
    mistake(field, Json(value), fmt::format("a number from {} to {}", low, high));
    return otherwise;
  }

  std::string_view text(std::string_view field, std::string_view general) {
    const Json* value = find(field, general);
    if (!value) return {};
    if (value->is_string()) return value->get_ref<const std::string&>();
    mistake(field, *value, "a text");
    return {};
  }

  bool flag(std::string_view field) {
    const Json* value = find(field, {});
    if (!value) return false;
    if (value->is_boolean()) return value->get<bool>();
    mistake(field, *value, "true or false");
    return false;
  }

  std::optional<Digest> digest(std::string_view field, std::string_view general) {
    const std::string_view hex = text(field, general);
    if (hex.empty()) return std::nullopt;
    const auto digest = Digest::from_hex(hex);
    if (!digest) mistake(field, Json(hex), "32 hexadecimal digits");
    return digest;
  }

  CheckpointId id(std::string_view field) {
    const std::string_view words = text(field, {});
    if (words.empty()) return {};
    const auto id = checkpoint_id_from(words);
    if (!id) mistake(field, Json(words), "step-attempt-try");
    return id.value_or(CheckpointId{});
  }

  // A word of an enumeration; absent reads as the first.
  template <class Enum>
  Enum word(std::string_view field, std::optional<Enum> (*from)(std::string_view)) {
    const std::string_view words = text(field, {});
    if (words.empty()) return Enum{};
    const auto value = from(words);
    if (!value) mistake(field, Json(words), "a word that is known here");
    return value.value_or(Enum{});
  }

  const Json& json() const { return json_; }
  const std::optional<Error>& error() const { return error_; }
  void mistake(std::string_view field, const Json& value, std::string_view wanted) {
    if (!error_) error_ = bad(fmt::format("{}: {} is not {}", field, value.dump(), wanted));
  }

 private:
  const Json* find(std::string_view field, std::string_view general) const {
    const auto found = json_.find(std::string(field.empty() ? general : field));
    return found == json_.end() || error_ ? nullptr : &*found;
  }

  const Json& json_;
  std::optional<Error> error_;
};

Result<Event> event_from(const Json& json, NameTable& names) {
  Fields fields(json);
  const std::string_view kind_name = fields.text("event", {});
  const auto kind = event_kind_from(kind_name);
  if (!kind) return bad(fmt::format("\"{}\" is not a kind of event", kind_name));
  const EventFields& of = field_names(*kind);
  Event event;
  event.kind = *kind;
  event.time = Time(fields.number("time", {}));
  event.attempt =
      static_cast<std::int32_t>(fields.number_within("attempt", 0, std::numeric_limits<std::int32_t>::max(), 0));
  event.rank =
      static_cast<std::int16_t>(fields.number_within("rank", -1, std::numeric_limits<std::int16_t>::max(), -1));
  event.step = fields.number("step", {});
  event.phase = fields.word<Phase>("phase", phase_from);
  event.a = fields.number(of.a, "a");
  event.b = fields.number(of.b, "b");
  event.c = fields.number(of.c, "c");
  event.name = names.intern(fields.text(of.name, "name"));
  event.detail = names.intern(fields.text(of.detail, "detail"));
  event.digest = fields.digest(of.digest, "digest").value_or(Digest{});
  if (fields.error()) return *fields.error();
  return event;
}

Status state_from(const Json& json, StateTable& states) {
  Fields fields(json);
  const auto state = fields.digest("state", {});
  const auto list = json.find("tensors");
  if (!state || list == json.end() || !list->is_object()) return bad("a state needs its digest and its tensors");
  std::vector<NamedDigest> tensors;
  for (const auto& [name, hex] : list->items()) {
    const auto digest = hex.is_string() ? Digest::from_hex(hex.get_ref<const std::string&>()) : std::nullopt;
    if (!digest) return bad(fmt::format("tensor {}: {} is not 32 hexadecimal digits", name, hex.dump()));
    tensors.push_back({name, *digest});
  }
  states.describe(*state, tensors);
  return {};
}

Result<ProbeResult> probe_from(const Json& json, const StateTable& states) {
  Fields fields(json);
  ProbeResult result;
  result.view = fields.word<ProbeView>("view", probe_view_from);
  result.outcome = fields.word<ProbeOutcome>("outcome", probe_outcome_from);
  result.error = fields.text("error", {});
  result.found = fields.id("found");
  result.complete = fields.flag("complete");
  result.provenance_coherent = fields.flag("provenance_coherent");
  result.reason = fields.text("reason", {});
  if (const auto state = fields.digest("state_of_found", {})) {
    result.state = states.find(*state);
    if (result.state == no_state) return bad("state_of_found: no line before this one describes it");
  }
  if (fields.error()) return *fields.error();
  const auto seen = json.find("seen");
  if (seen == json.end()) return result;
  if (!seen->is_array()) return bad("seen: not a list");
  for (const Json& one : *seen) {
    if (!one.is_object()) return bad("seen: an entry is not an object");
    Fields entry(one);
    result.seen.push_back({.id = entry.id("id"), .validated = entry.flag("validated"), .intact = entry.flag("intact")});
    if (entry.error()) return *entry.error();
  }
  return result;
}

Status check_header(const Json& json) {
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string()) return bad("the first line must say the schema");
  if (schema->get_ref<const std::string&>() != history_schema) {
    return bad(fmt::format("schema {} is not {}", schema->dump(), history_schema));
  }
  return {};
}

Result<Json> parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("not a JSON object");
  return json;
}

// Appends what one line after the other says.
class HistoryReader {
 public:
  explicit HistoryReader(History& history) : history_(history) {}
  // Errors: invalid_input, naming what is wrong in the line. An empty line and the header are passed over.
  Status line(std::string_view text);

 private:
  History& history_;
  std::map<std::int64_t, std::int64_t> probes_;  // index in the lines -> index in the table
};

Status HistoryReader::line(std::string_view text) {
  if (text.empty()) return {};
  FD_TRY(const Json json, parse(text));
  if (json.contains("event")) {
    FD_TRY(Event event, event_from(json, history_.tables().names));
    if (event.kind == EventKind::probe) {
      const auto known = probes_.find(event.a);
      if (known == probes_.end()) return bad(fmt::format("probe result {} is not described before its event", event.a));
      event.a = known->second;
    }
    history_.append(event);
    return {};
  }
  if (json.contains("state")) return state_from(json, history_.tables().states);
  if (json.contains("probe_result")) {
    Fields fields(json);
    const std::int64_t index = fields.number("probe_result", {});
    if (fields.error()) return *fields.error();
    FD_TRY(ProbeResult result, probe_from(json, history_.tables().states));
    probes_[index] = history_.tables().probes.add(std::move(result));
    return {};
  }
  if (json.contains("schema")) return check_header(json);
  return {};
}

}  // namespace

Status append_lines(std::string_view text, History& history) {
  HistoryReader reader(history);
  int number = 0;
  while (!text.empty() || number == 0) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    Status status;
    if (number == 1) {
      auto header = parse(line);
      status = header ? check_header(*header) : Status(bad("the first line must say the schema"));
    } else {
      status = reader.line(line);
    }
    if (!status) return bad(fmt::format("history, line {}: {}", number, status.error().message));
  }
  return {};
}

Status save_history(const History& history, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out << to_lines(history);
  out.close();
  if (out) return {};
  return Error{.code = Code::io_error, .message = fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

Status load_history(const std::string& path, History& history) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Error{.code = Code::not_found, .message = fmt::format("cannot open {}: {}", path, std::strerror(errno))};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return Error{.code = Code::io_error, .message = fmt::format("cannot read {}", path)};
  const Status status = append_lines(text, history);
  if (!status) return bad(fmt::format("{}: {}", path, status.error().message));
  return {};
}

}  // namespace firedrill
