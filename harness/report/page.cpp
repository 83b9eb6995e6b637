#include "harness/report/page.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "engine/base/check.h"
#include "engine/seam/position.h"
#include "harness/report/page_template.h"
#include "harness/report/told.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

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

// Rows [from rank, to rank, messages].
Json messages_of(const History& history) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> messages;
  for (const std::uint32_t i : history.of(EventKind::message_taken)) ++messages[{history[i].a, history[i].rank}];
  Json rows = Json::array();
  for (const auto& [pair, count] : messages) rows.push_back({pair.first, pair.second, count});
  return rows;
}

// Rows [rank, group and operation, bytes sent, nanoseconds waited, calls].
Json sent_of(const History& history) {
  struct Sum {
    std::int64_t bytes = 0;
    std::int64_t waited = 0;
    std::int64_t calls = 0;
  };
  std::map<std::pair<int, std::string>, Sum> sums;
  for (const std::uint32_t i : history.of(EventKind::exchanged)) {
    const Event& event = history[i];
    Sum& sum =
        sums[{event.rank, std::string(history.text(event.name)) + " " + std::string(history.text(event.detail))}];
    sum.bytes += event.a;
    sum.waited += event.b;
    sum.calls += event.c;
  }
  Json rows = Json::array();
  for (const auto& [of, sum] : sums) rows.push_back({of.first, of.second, sum.bytes, sum.waited, sum.calls});
  return rows;
}

// Rows [attempt, from, to, why it ended].
Json attempts_of(const History& history) {
  Json rows = Json::array();
  for (const Event& event : history.events()) {
    if (event.kind == EventKind::attempt_started) {
      rows.push_back({event.attempt, event.time.count(), event.time.count(), "not ended"});
    }
    if (event.kind == EventKind::attempt_ended && !rows.empty()) {
      rows.back()[2] = event.time.count();
      rows.back()[3] = history.text(event.name);
    }
  }
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
    const std::optional<Told> told = told_of(history, event);
    if (!told) continue;
    const auto [kind, new_kind] = kind_numbers.emplace(event.kind, static_cast<int>(kinds.size()));
    if (new_kind) kinds.push_back(to_string(event.kind));
    const auto [words, new_text] = text_numbers.emplace(told->words, static_cast<int>(texts.size()));
    if (new_text) texts.push_back(told->words);
    rows.push_back({event.time.count(), event.attempt, event.rank, kind->second, event.step, words->second});
  }
  Json phases = {"other"};
  for (int phase = 1; phase < phase_count; ++phase) phases.push_back(to_string(static_cast<Phase>(phase)));
  data["end"] = end;
  data["total"] = history.size();
  data["ends_early"] = history.of(EventKind::run_ended).empty();
  data["phases"] = std::move(phases);
  data["kinds"] = std::move(kinds);
  data["texts"] = std::move(texts);
  data["events"] = std::move(rows);
  data["slices"] = slices_of(history);
  data["tensors"] = tensors_of(history);
  data["messages"] = messages_of(history);
  data["sent"] = sent_of(history);
  data["attempts"] = attempts_of(history);
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
