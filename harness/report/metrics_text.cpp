// The metrics of a run as JSON, as text for people, and as OpenMetrics text.
// Format: https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md. Everything is a gauge or a
// summary, of which also the older text format of Prometheus has the same spelling.
#include <fmt/format.h>

#include "harness/report/accounting.h"
#include "harness/report/metrics.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Spread& spread) {
  return {{"p50", spread.p50},           {"p95", spread.p95},           {"max", spread.max},
          {"max_rank", spread.max_rank}, {"max_step", spread.max_step}, {"samples", spread.samples}};
}

Json estimate_json(const std::optional<EttrEstimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"ettr", estimate->ettr},
          {"nodes", estimate->nodes},
          {"failures_per_node_hour", estimate->failures_per_node_hour},
          {"restart", estimate->restart},
          {"interval", estimate->interval},
          {"save", estimate->save}};
}

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

std::string share(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// `value` of a label: backslash, quote and newline are escaped.
std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    c == '\n' ? text += "\\n" : text += c;
  }
  return text;
}

class OpenMetrics {
 public:
  explicit OpenMetrics(const MetricLabels& labels)
      : labels_(fmt::format("scenario=\"{}\",world=\"{}\",layout=\"{}\"", escaped(labels.scenario),
                            escaped(labels.world), escaped(labels.layout))) {}

  void family(std::string_view name, std::string_view help, std::string_view type = "gauge") {
    name_ = name;
    text_ += fmt::format("# HELP firedrill_{0} {1}\n# TYPE firedrill_{0} {2}\n", name, help, type);
  }
  void sample(double value, const std::string& labels = "") {
    text_ += fmt::format("firedrill_{}{{{}{}{}}} {}\n", name_, labels_, labels.empty() ? "" : ",", labels, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    family(name, help);
    sample(value);
  }
  std::string close() { return std::move(text_) + "# EOF\n"; }

 private:
  std::string labels_;
  std::string name_;
  std::string text_;
};

// Name and time of each part of the wall time.
std::vector<std::pair<const char*, std::int64_t>> parts_of(const Metrics& metrics) {
  return {{"productive", metrics.productive}, {"checkpoint", metrics.checkpoint},
          {"detect", metrics.lost.detect},    {"restart", metrics.lost.restart},
          {"restore", metrics.lost.restore},  {"redo", metrics.lost.redo},
          {"start", metrics.start},           {"other", metrics.other}};
}

void add_account(const Metrics& metrics, OpenMetrics& out) {
  if (metrics.input) {
    out.family("input_seconds", "Time of a rank in the input of a step.");
    out.sample(seconds(metrics.input->p50), "quantile=\"0.5\"");
    out.sample(seconds(metrics.input->p95), "quantile=\"0.95\"");
    out.sample(seconds(metrics.input->max), "quantile=\"1\"");
    out.gauge("input_ratio", "Share of the time of all ranks that went into input.", metrics.input_share);
  }
  if (!metrics.ranks.empty()) {
    out.family("idle_ratio", "Share of its time that a rank waited for peers.");
    for (const RankIdle& rank : metrics.ranks) out.sample(rank.share(), fmt::format("rank=\"{}\"", rank.rank));
  }
  if (!metrics.groups.empty()) {
    out.family("exchange_seconds", "Time of a rank in the calls of a group in a step.");
    for (const SpentLine& line : metrics.groups) {
      out.sample(seconds(line.time.p50), fmt::format("group=\"{}\",quantile=\"0.5\"", line.what));
      out.sample(seconds(line.time.p95), fmt::format("group=\"{}\",quantile=\"0.95\"", line.what));
      out.sample(seconds(line.time.max), fmt::format("group=\"{}\",quantile=\"1\"", line.what));
    }
  }
  if (metrics.memory_high_water) {
    out.gauge("memory_high_water_bytes", "Memory of the rank that held most.",
              static_cast<double>(metrics.memory_high_water->max));
  }
}

}  // namespace

Json json_of(const Metrics& metrics) {
  Json json = {{"finished", metrics.finished},
               {"attempts", metrics.attempts},
               {"failures", metrics.failures},
               {"wall", metrics.wall},
               {"start", metrics.start},
               {"productive", metrics.productive},
               {"checkpoint", metrics.checkpoint},
               {"lost",
                {{"detect", metrics.lost.detect},
                 {"restart", metrics.lost.restart},
                 {"restore", metrics.lost.restore},
                 {"redo", metrics.lost.redo}}},
               {"other", metrics.other},
               {"ettr", metrics.ettr},
               {"estimate", estimate_json(metrics.estimate)},
               {"steps", metrics.steps},
               {"steps_redone", metrics.steps_redone},
               {"tokens", metrics.tokens},
               {"tokens_per_second", metrics.tokens_per_second}};
  const StepTimes& step = metrics.step;
  json["step_time"] = {{"p50", step.p50},        {"p95", step.p95},           {"p99", step.p99},
                       {"max", step.max},        {"max_step", step.max_step}, {"max_attempt", step.max_attempt},
                       {"samples", step.samples}};
  json["saves"] = metrics.saves;
  json["saves_beside"] = metrics.saves_beside;
  json["checkpoint_age"] = {{"max", metrics.checkpoint_age_max}, {"at_end", metrics.checkpoint_age_at_end}};
  json["input"] = metrics.input ? json_of(*metrics.input) : Json();
  if (metrics.input) json["input"]["share"] = metrics.input_share;
  json["memory_high_water"] = metrics.memory_high_water ? json_of(*metrics.memory_high_water) : Json();
  json["idle"] = Json::array();
  for (const RankIdle& rank : metrics.ranks) json["idle"].push_back({{"rank", rank.rank}, {"share", rank.share()}});
  json["exchange"] = Json::array();
  for (const SpentLine& line : metrics.groups) {
    json["exchange"].push_back(
        {{"group", line.what}, {"time", json_of(line.time)}, {"waiting", json_of(line.waiting)}});
  }
  return json;
}

std::string to_text(const Metrics& metrics) {
  if (metrics.wall <= 0) return "";
  std::string text = fmt::format("  worth          {:.0f} useful tokens a second; {:.1f} % of {} productive (ETTR)\n",
                                 metrics.tokens_per_second, 100 * metrics.ettr, duration_text(metrics.wall));
  if (metrics.estimate) {
    text += fmt::format("                 published estimate {:.1f} %: restart {}, {} between saves, save {}\n",
                        100 * metrics.estimate->ettr, duration_text(metrics.estimate->restart),
                        duration_text(metrics.estimate->interval), duration_text(metrics.estimate->save));
  }
  text += "  time by cause ";
  for (const auto& [name, time] : parts_of(metrics)) {
    if (time > 0) text += fmt::format(" {} {}", name, share(time, metrics.wall));
  }
  const StepTimes& step = metrics.step;
  text += fmt::format("\n  step time      {} at p50, {} at p95, {} at p99, {} at most (step {}, attempt {})\n",
                      duration_text(step.p50), duration_text(step.p95), duration_text(step.p99),
                      duration_text(step.max), step.max_step, step.max_attempt);
  text += fmt::format("  checkpoint age {} at most, {} at the end\n", duration_text(metrics.checkpoint_age_max),
                      duration_text(metrics.checkpoint_age_at_end));
  return text;
}

std::string to_open_metrics(const Metrics& metrics, const MetricLabels& labels) {
  OpenMetrics out(labels);
  out.gauge("finished", "Whether the job got to its end.", metrics.finished ? 1 : 0);
  out.gauge("attempts", "Launches of all ranks.", metrics.attempts);
  out.gauge("failures", "Attempts that ended before the job was done.", metrics.failures);
  out.gauge("wall_seconds", "From the first attempt to the end of the run.", seconds(metrics.wall));
  out.family("time_seconds", "The wall time by what it went into.");
  for (const auto& [name, time] : parts_of(metrics)) out.sample(seconds(time), fmt::format("part=\"{}\"", name));
  out.gauge("ettr_ratio", "Effective training-time ratio: productive time by wall time.", metrics.ettr);
  if (metrics.estimate) {
    out.gauge("ettr_estimate_ratio", "What the formula of arXiv 2410.21680 gives for this run's failures and saves.",
              metrics.estimate->ettr);
  }
  out.gauge("useful_tokens", "Tokens of the completed steps, each counted once.", static_cast<double>(metrics.tokens));
  out.gauge("useful_tokens_per_second", "Of the wall time.", metrics.tokens_per_second);
  out.gauge("steps", "Steps that all ranks completed.", static_cast<double>(metrics.steps));
  out.gauge("steps_redone", "Completions of a step that had been completed before.",
            static_cast<double>(metrics.steps_redone));
  out.family("step_seconds", "Time of a step, without saves.", "summary");
  const StepTimes& step = metrics.step;
  out.sample(seconds(step.p50), "quantile=\"0.5\"");
  out.sample(seconds(step.p95), "quantile=\"0.95\"");
  out.sample(seconds(step.p99), "quantile=\"0.99\"");
  out.sample(seconds(step.max), "quantile=\"1\"");
  out.gauge("checkpoint_age_max_seconds", "Longest time since an acknowledged checkpoint.",
            seconds(metrics.checkpoint_age_max));
  out.gauge("checkpoint_age_seconds", "Time since the last acknowledged checkpoint, at the end of the run.",
            seconds(metrics.checkpoint_age_at_end));
  add_account(metrics, out);
  return out.close();
}

}  // namespace firedrill
