// The report as JSON: fields are added, never renamed; scripts depend on them.
#include "harness/report/accounting.h"
#include "harness/report/report.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json faults_of(const RunReport& run) {
  Json faults = {{"planned", Json::array()}, {"fired", Json::array()}};
  for (const PlannedFault& planned : run.planned) {
    faults["planned"].push_back({{"fault", planned.fault}, {"may_not_fire", planned.may_not_fire}});
  }
  for (const FiredFault& fired : run.fired) {
    faults["fired"].push_back({{"fault", fired.fault},
                               {"attempt", fired.attempt},
                               {"rank", fired.rank},
                               {"step", fired.step},
                               {"phase", fired.phase}});
  }
  return faults;
}

Json attempts_of(const RunReport& run) {
  Json attempts = Json::array();
  for (const AttemptLine& attempt : run.attempts) {
    attempts.push_back({{"attempt", attempt.attempt},
                        {"floor", attempt.floor},
                        {"began", attempt.began},
                        {"what", attempt.what},
                        {"ended", attempt.ended}});
  }
  return attempts;
}

Json attribution_of(const RunReport& run) {
  Json lines = Json::array();
  for (const AttributionLine& line : run.attribution) {
    Json last = Json::object();
    for (const auto& [rank, call] : line.last_completed) last[std::to_string(rank)] = call;
    lines.push_back({{"attempt", line.attempt},
                     {"kind", line.kind},
                     {"ranks", line.ranks},
                     {"stream", line.stream},
                     {"sequence", line.sequence},
                     {"step", line.step},
                     {"phase", line.phase},
                     {"call", line.call},
                     {"what", text_or_null(line.what)},
                     {"last_completed", last},
                     {"text", line.text}});
  }
  return lines;
}

Json json_of(const RunReport& run) {
  Json json = {{"scenario", run.scenario}, {"world", run.world}, {"layout", run.layout}, {"seed", run.seed}};
  json["mutant"] = text_or_null(run.mutant);
  json["verdict"] = to_string(run.verdict);
  json["expected"] = run.expected;
  json["met"] = met(run);
  json["exit_code"] = exit_code_of(run);
  json["reason"] = text_or_null(run.reason);
  json["final_digest"] = text_or_null(run.final_digest);
  json["golden_digest"] = text_or_null(run.golden_digest);
  json["golden_note"] = text_or_null(run.golden_note);
  json["first_difference"] = nullptr;
  if (run.first_difference) {
    json["first_difference"] = {{"tensor", run.first_difference->tensor}, {"step", run.first_difference->step}};
  }
  json["faults"] = faults_of(run);
  json["properties"] = Json::array();
  for (const PropertyLine& property : run.properties) {
    json["properties"].push_back({{"name", property.name},
                                  {"verdict", property.verdict},
                                  {"checked", property.checked},
                                  {"evidence", property.evidence}});
  }
  json["attempts"] = attempts_of(run);
  if (!run.accounting.empty()) json["accounting"] = json_of(run.accounting);
  if (run.metrics) json["metrics"] = json_of(*run.metrics);
  json["placement"] = Json::array();
  for (const PlacementLine& line : run.placement) {
    json["placement"].push_back(
        {{"group", line.group}, {"ranks", line.ranks}, {"nodes", line.nodes}, {"crosses_nodes", line.nodes > 1}});
  }
  json["warnings"] = run.warnings;
  json["attribution"] = attribution_of(run);
  json["duration"] = run.seconds;
  json["directory"] = text_or_null(run.directory);
  json["reproduce"] = text_or_null(run.reproduce);
  return json;
}

}  // namespace

std::string to_json(const Report& report) {
  Json json = {{"schema", "firedrill.report/1"}, {"verb", report.verb}};
  json["environment"] = {{"version", report.environment.version},
                         {"commit", report.environment.commit},
                         {"numerics_key", text_or_null(report.environment.numerics_key)},
                         {"cores", report.environment.cores}};
  json["verdict"] = to_string(report.verdict);
  json["exit_code"] = report.exit_code;
  json["seed"] = report.seed;
  json["duration"] = report.duration;
  json["runs"] = Json::array();
  for (const RunReport& run : report.runs) json["runs"].push_back(json_of(run));
  for (const auto& [key, value] : report.more.items()) json[key] = value;
  // Evidence may quote bytes of a damaged file, which need not be text.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace firedrill
