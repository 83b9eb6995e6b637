#include "harness/report/page.h"

#include <algorithm>
#include <map>
#include <vector>

#include "engine/base/check.h"
#include "engine/seam/position.h"
#include "harness/report/page_template.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

// What a person reads of a run; the rest (bytes, waits, calls, probes) stands in sums.
bool is_told(const Event& event) {
  switch (event.kind) {
    case EventKind::probe:
    case EventKind::golden:
    case EventKind::golden_sample:
    case EventKind::sample:
    case EventKind::time_spent:
    case EventKind::exchanged:
    case EventKind::message_taken:
    case EventKind::calls:
    case EventKind::call_record: return false;
    default: return true;
  }
}

// Rows [attempt, rank, phase, from, length]: as in a trace, the phases of a step in their order, up to when it was
// told.
Json slices_of(const History& history) {
  Json slices = Json::array();
  struct Told {
    Time time{0};
    std::int64_t from = 0;
  };
  std::map<int, Told> told;
  const auto spent = history.of(EventKind::time_spent);
  // 0: other; below zero: not of a phase but of a group.
  const auto phase_of = [&history](const Event& event) {
    const std::string_view name = history.text(event.name);
    const auto phase = phase_from(name);
    return name == "other" ? 0 : phase && *phase != Phase::none ? static_cast<int>(*phase) : -1;
  };
  const auto counts = [&phase_of](const Event& event) { return phase_of(event) >= 0; };
  for (std::size_t i = 0; i < spent.size(); ++i) {
    const Event& event = history[spent[i]];
    if (!counts(event) || event.a <= 0) continue;
    Told& of = told[event.rank];
    if (of.time != event.time) {
      std::int64_t all = 0;
      for (std::size_t k = i; k < spent.size() && history[spent[k]].time == event.time; ++k) {
        if (history[spent[k]].rank == event.rank && counts(history[spent[k]])) all += history[spent[k]].a;
      }
      of = {.time = event.time, .from = event.time.count() - all};
    }
    slices.push_back({event.attempt, event.rank, phase_of(event), of.from, event.a});
    of.from += event.a;
  }
  return slices;
}

// Rows [tensor, first step after which a rank's differs from the golden's; -1: none].
Json tensors_of(const History& history) {
  const StateTable& states = history.tables().states;
  std::map<std::int64_t, StateId> golden;
  for (const std::uint32_t i : history.of(EventKind::golden)) golden[history[i].step] = states.find(history[i].digest);
  std::map<std::string, std::int64_t> first;
  for (const auto& [step, state] : golden) {
    if (state == no_state) continue;
    for (const StateTensor& tensor : states.tensors(state)) {
      const std::string name(history.text(tensor.name));
      if (name.find('[') == std::string::npos) first.emplace(name, -1);  // runs of tensors follow from them
    }
  }
  for (const std::uint32_t i : history.of(EventKind::step_done)) {
    const Event& event = history[i];
    const auto right = golden.find(event.step);
    const StateId mine = states.find(event.digest);
    if (right == golden.end() || right->second == no_state || mine == no_state) continue;
    if (states.agree(mine, right->second)) continue;
    std::map<NameId, Digest> wanted;
    for (const StateTensor& tensor : states.tensors(right->second)) wanted[tensor.name] = tensor.digest;
    for (const StateTensor& tensor : states.tensors(mine)) {
      const auto same = wanted.find(tensor.name);
      if (same == wanted.end() || same->second == tensor.digest) continue;
      const auto known = first.find(std::string(history.text(tensor.name)));
      if (known != first.end() && (known->second < 0 || known->second > event.step)) known->second = event.step;
    }
  }
  Json rows = Json::array();
  for (const auto& [name, step] : first) rows.push_back({name, step});
  return rows;
}

void add_history(const History& history, Json& data) {
  Json kinds = Json::array();
  Json texts = Json::array();
  Json rows = Json::array();
  std::map<EventKind, int> kind_numbers;
  std::map<std::string, int> text_numbers;
  std::int64_t end = 1;
  for (const Event& event : history.events()) {
    end = std::max(end, event.time.count());
    if (!is_told(event)) continue;
    const auto [kind, new_kind] = kind_numbers.emplace(event.kind, static_cast<int>(kinds.size()));
    if (new_kind) kinds.push_back(to_string(event.kind));
    std::string text(history.text(event.name));
    if (event.detail != 0) text += (text.empty() ? "" : " | ") + std::string(history.text(event.detail));
    const auto [words, new_text] = text_numbers.emplace(text, static_cast<int>(texts.size()));
    if (new_text) texts.push_back(text);
    rows.push_back({event.time.count(), event.attempt, event.rank, kind->second, event.step, words->second});
  }
  Json phases = {"other"};
  for (int phase = 1; phase < phase_count; ++phase) phases.push_back(to_string(static_cast<Phase>(phase)));
  data["end"] = end;
  data["total"] = history.size();
  data["phases"] = std::move(phases);
  data["kinds"] = std::move(kinds);
  data["texts"] = std::move(texts);
  data["events"] = std::move(rows);
  data["slices"] = slices_of(history);
  data["tensors"] = tensors_of(history);
}

}  // namespace

std::string to_page(const Json& report, const History* history) {
  Json data = {{"report", report}};
  if (history != nullptr) add_history(*history, data);
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::string_view mark = "@DATA@";
  const std::string_view page = page_template();
  const std::size_t at = page.find(mark);
  FD_CHECK(at != std::string_view::npos, "page.html has no {}", mark);
  std::string text(page.substr(0, at));
  for (const char c : json) {  // nothing inside may end the script element
    c == '<' ? text += "\\u003c" : text += c;
  }
  return text.append(page.substr(at + mark.size()));
}

}  // namespace firedrill
