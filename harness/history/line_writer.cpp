#include "harness/history/line_writer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/error.h"
#include "engine/seam/file_system.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

// Names on a disk may hold any byte; a byte that is no UTF-8 becomes a replacement character instead of an exception.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

constexpr std::int64_t words_of(Wording wording) {
  switch (wording) {
    case Wording::none: return 0;
    case Wording::view: return probe_view_count;
    case Wording::operation: return file_op_count;
    case Wording::file_operation: return 1 + file_op_count;
    case Wording::failure: return 1 + static_cast<std::int64_t>(Code::internal) + 1;
  }
  return 0;
}

void put_number(Json& json, std::string_view field, std::string_view general, std::int64_t value) {
  if (field.empty()) {
    if (value != 0) json[std::string(general)] = value;
    return;
  }
  const std::string_view word = to_word(wording_of(field), value);
  if (word.empty()) {
    json[std::string(field)] = value;
  } else {
    json[std::string(field)] = word;
  }
}

void put_text(Json& json, std::string_view field, std::string_view general, std::string_view text) {
  if (!text.empty()) json[std::string(field.empty() ? general : field)] = text;
}

Json json_of(const CheckpointId& id) { return to_string(id); }

}  // namespace

Wording wording_of(std::string_view field) {
  if (field == "view") return Wording::view;
  if (field == "operation") return Wording::operation;
  if (field == "file_operation") return Wording::file_operation;
  if (field == "failed_with") return Wording::failure;
  return Wording::none;
}

std::string_view to_word(Wording wording, std::int64_t value) {
  if (value < 0 || value >= words_of(wording)) return {};
  switch (wording) {
    case Wording::none: return {};
    case Wording::view: return to_string(static_cast<ProbeView>(value));
    case Wording::operation: return to_string(static_cast<FileOp>(value));
    case Wording::file_operation: return value == 0 ? "none" : to_string(static_cast<FileOp>(value - 1));
    case Wording::failure: return value == 0 ? "nothing" : to_string(static_cast<Code>(value - 1));
  }
  return {};
}

std::optional<std::int64_t> from_word(Wording wording, std::string_view word) {
  for (std::int64_t value = 0; value < words_of(wording); ++value) {
    if (to_word(wording, value) == word) return value;
  }
  return std::nullopt;
}

std::string header_line() { return dump(Json{{"schema", history_schema}}); }

std::string event_line(const Event& event, const NameTable& names, std::int64_t result) {
  const EventFields& fields = field_names(event.kind);
  Json json;
  json["event"] = to_string(event.kind);
  json["time"] = event.time.count();
  if (event.attempt != 0) json["attempt"] = event.attempt;
  if (event.rank != -1) json["rank"] = event.rank;
  if (event.step != 0) json["step"] = event.step;
  if (event.phase != Phase::none) json["phase"] = to_string(event.phase);
  put_number(json, fields.a, "a", event.kind == EventKind::probe ? result : event.a);
  put_number(json, fields.b, "b", event.b);
  put_number(json, fields.c, "c", event.c);
  put_text(json, fields.name, "name", names.text(event.name));
  put_text(json, fields.detail, "detail", names.text(event.detail));
  if (event.digest != Digest{}) put_text(json, fields.digest, "digest", event.digest.hex());
  return dump(json);
}

std::string state_line(const Digest& state, std::span<const NamedDigest> tensors) {
  Json json;
  json["state"] = state.hex();
  Json& list = json["tensors"] = Json::object();
  for (const NamedDigest& tensor : tensors) list[std::string(tensor.name)] = tensor.digest.hex();
  return dump(json);
}

std::string probe_line(std::int64_t index, const ProbeResult& result, const StateTable& states) {
  Json json;
  json["probe_result"] = index;
  json["view"] = to_string(result.view);
  json["outcome"] = to_string(result.outcome);
  if (!result.error.empty()) json["error"] = result.error;
  if (result.outcome == ProbeOutcome::found || result.found != CheckpointId{}) {
    json["found"] = json_of(result.found);
    json["complete"] = result.complete;
    json["provenance_coherent"] = result.provenance_coherent;
    if (!result.reason.empty()) json["reason"] = result.reason;
    if (result.state != no_state) json["state_of_found"] = states.digest(result.state).hex();
  }
  Json& seen = json["seen"] = Json::array();
  for (const SeenCheckpoint& one : result.seen) {
    seen.push_back(Json{{"id", json_of(one.id)}, {"validated", one.validated}, {"intact", one.intact}});
  }
  return dump(json);
}

namespace {

// Writes what an event refers to before the event, once each.
class Writer {
 public:
  explicit Writer(const History& history) : history_(history) {}

  std::string text() && {
    put(header_line());
    for (const Event& event : history_.events()) {
      if (event.digest != Digest{}) put_state(states().find(event.digest));
      put(event_line(event, history_.tables().names, event.kind == EventKind::probe ? put_probe(event.a) : 0));
    }
    return std::move(text_);
  }

 private:
  const StateTable& states() const { return history_.tables().states; }

  void put(const std::string& line) {
    text_ += line;
    text_ += '\n';
  }

  void put_state(StateId state) {
    if (state == no_state || !states_put_.insert(state).second) return;
    std::vector<NamedDigest> tensors;
    for (const StateTensor& tensor : states().tensors(state)) {
      tensors.push_back({history_.text(tensor.name), tensor.digest});
    }
    // Numbers of names depend on what the table saw before; a file must not.
    std::sort(tensors.begin(), tensors.end(),
              [](const NamedDigest& a, const NamedDigest& b) { return a.name < b.name; });
    put(state_line(states().digest(state), tensors));
  }

  std::int64_t put_probe(std::int64_t index) {
    const auto [place, fresh] = probes_put_.try_emplace(index, static_cast<std::int64_t>(probes_put_.size()));
    if (fresh) {
      const ProbeResult& result = history_.tables().probes[index];
      put_state(result.state);
      put(probe_line(place->second, result, states()));
    }
    return place->second;
  }

  const History& history_;
  std::string text_;
  std::set<StateId> states_put_;
  std::map<std::int64_t, std::int64_t> probes_put_;
};

}  // namespace

std::string to_lines(const History& history) { return Writer(history).text(); }

}  // namespace firedrill
