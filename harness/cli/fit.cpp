// firedrill fit JOB: what a layout of a job holds on each rank and whether that fits; without a layout, those that fit.
// Nothing is run, so the job may have a shape that this engine cannot run.
#include <fmt/format.h>

#include <memory>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/job/limits.h"
#include "engine/job/pipeline.h"
#include "engine/job/planner.h"
#include "engine/job/tensors.h"
#include "harness/cli/verb.h"
#include "harness/scenario/scenario.h"

namespace firedrill {
namespace {

using Json = nlohmann::ordered_json;
constexpr int does_not_fit = 2;

struct FitArguments {
  std::string job;
  std::string gpu_memory = "80GB";
  std::string layout;
  int ranks = 0;
  bool one_accumulator = false;
};

std::string bytes_text(std::int64_t bytes) { return rounded_bytes(static_cast<double>(bytes)); }

// "70.62 billion".
std::string count_text(std::int64_t count) {
  if (count < 1'000'000) return fmt::format("{}", count);
  if (count < 1'000'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) / 1e6);
  return fmt::format("{:.2f} billion", static_cast<double>(count) / 1e9);
}

void say_job(const Job& job, Report& report) {
  const std::int64_t parameters = parameter_count(job);
  const ElementBytes bytes = element_bytes(job);
  report.more["parameters"] = parameters;
  report.more["global_batch"] = job.global_batch();
  std::string line = fmt::format("{}: {} parameters", job.name, count_text(parameters));
  if (job.model.experts > 0) {
    report.more["active_parameters"] = active_parameter_count(job);
    line += fmt::format(" ({} for one token)", count_text(active_parameter_count(job)));
  }
  report.lines.push_back(
      fmt::format("{}; unsharded {} ({} + {} + {} + {} bytes each: parameter, gradient, master copy, "
                  "moments, {})",
                  line, bytes_text(parameters * bytes.state()), bytes.parameter, bytes.gradient, bytes.master,
                  bytes.moments, to_string(job.precision.parameters)));
  for (const std::string& reason : cannot_run(job)) report.lines.push_back("planned only: " + reason);
}

// The same number for who thinks in lanes and who thinks in ranks.
std::string batch_line(const Job& job, const Layout& layout) {
  const BatchSpec& batch = job.batch;
  const int lanes = job.lanes.dp / layout.dp;
  return fmt::format(
      "global batch {} samples of {} tokens: per lane {} x {} accumulation x {} dp lanes; per rank {} "
      "micro-batches of {} ({} dp lanes of {}) x {} dp ranks",
      job.global_batch(), job.model.sequence, batch.lane_micro_batch, batch.accumulation, job.lanes.dp,
      micro_batches_per_rank(layout, job), batch.lane_micro_batch, lanes, job.lanes.dp, layout.dp);
}

// What the gradients' figure is made of, where it is not one for each parameter.
std::vector<std::string> gradient_lines(const Job& job, const Layout& layout, Accumulators accumulators) {
  std::vector<std::string> lines;
  const int own = job.lanes.dp / layout.dp;
  if (accumulators == Accumulators::one) {
    lines.emplace_back(
        "gradients: one accumulator a rank, so their sums, and the bits of the result, depend on the layout");
  } else {
    if (own > 1)
      lines.push_back(fmt::format("gradients: a rank owns {} dp lanes and has an accumulator for each", own));
    if (layout.ep > 1) {
      lines.push_back(
          fmt::format("gradients: an expert has an accumulator for each lane of its ep group of {} ranks", layout.ep));
    }
  }
  if (layout.zero >= 2 && micro_batches_per_rank(layout, job) > 1) {
    lines.push_back(
        fmt::format("gradients: zero {} shards their sum; while micro-batches add up the accumulators stay "
                    "whole",
                    layout.zero));
  }
  return lines;
}

Json json_of(const RankClass& ranks, std::int64_t reserve) {
  const RankMemory& m = ranks.memory;
  return {{"stage", ranks.pp},
          {"first_rank", ranks.first_rank},
          {"ranks", ranks.ranks},
          {"in_flight", ranks.in_flight},
          {"parameters", m.parameters},
          {"gradients", m.gradients},
          {"masters", m.masters},
          {"moments", m.moments},
          {"persistent", m.persistent()},
          {"activations", m.activations},
          {"working", m.working},
          {"buffers", m.buffers},
          {"reserve", reserve},
          {"total", m.total() + reserve}};
}

Json json_of(const std::vector<GroupPlacement>& placements) {
  Json json = Json::array();
  for (const GroupPlacement& placement : placements) {
    json.push_back({{"group", placement.group},
                    {"ranks", placement.size},
                    {"nodes", placement.nodes},
                    {"crosses_nodes", placement.crosses()}});
  }
  return json;
}

void table_of(const MemoryPlan& plan, Report& report) {
  report.lines.push_back(fmt::format("{:>5} {:>6} {:>9} {:>10} {:>9} {:>8} {:>8} {:>11} {:>8} {:>8} {:>8} {:>8}",
                                     "stage", "ranks", "in flight", "parameters", "gradients", "masters", "moments",
                                     "activations", "working", "buffers", "reserve", "total"));
  for (std::size_t i = 0; i < plan.classes.size(); ++i) {
    const RankClass& ranks = plan.classes[i];
    const RankMemory& m = ranks.memory;
    report.lines.push_back(fmt::format(
        "{:>5} {:>6} {:>9} {:>10} {:>9} {:>8} {:>8} {:>11} {:>8} {:>8} {:>8} {:>8}{}", ranks.pp, ranks.ranks,
        ranks.in_flight, bytes_text(m.parameters), bytes_text(m.gradients), bytes_text(m.masters),
        bytes_text(m.moments), bytes_text(m.activations), bytes_text(m.working), bytes_text(m.buffers),
        bytes_text(plan.reserve), bytes_text(m.total() + plan.reserve), i == plan.worst ? "  worst" : ""));
  }
}

void say_choices(const Job& job, const SearchOptions& search, Report& report) {
  const std::vector<LayoutChoice> choices = layouts_that_fit(job, search);
  report.more["layouts"] = Json::array();
  if (choices.empty()) {
    report.lines.push_back(fmt::format("no layout of this job fits in {} a GPU{}", bytes_text(search.memory.gpu_memory),
                                       search.ranks ? fmt::format(" on {} ranks", *search.ranks) : ""));
    return;
  }
  report.lines.push_back(fmt::format("layouts that fit in {} a GPU on {} ranks{}, the quickest by the estimate first:",
                                     bytes_text(search.memory.gpu_memory), choices.front().layout.world_size(),
                                     search.ranks ? "" : ", the fewest"));
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const LayoutChoice& choice = choices[i];
    report.lines.push_back(fmt::format("{:>3}. {}", i + 1, to_string(choice.layout)));
    report.lines.push_back("     " + choice.reason);
    const std::vector<std::string> warnings = warnings_of(job, choice.layout);
    for (const std::string& warning : warnings) report.lines.push_back("     warning: " + warning);
    report.more["layouts"].push_back({{"layout", to_string(choice.layout)},
                                      {"ranks", choice.layout.world_size()},
                                      {"total", choice.needed},
                                      {"margin", search.memory.gpu_memory - choice.needed},
                                      {"bubble", choice.step.bubble},
                                      {"step_seconds", choice.step.seconds()},
                                      {"reason", choice.reason},
                                      {"warnings", warnings},
                                      {"placement", json_of(placement_of(job, choice.layout))}});
  }
}

void say_layout(const Job& job, const Layout& layout, const MemoryOptions& memory, Report& report) {
  const MemoryPlan plan = plan_memory(job, layout, memory);
  report.more["layout"] = to_string(layout);
  report.more["fits"] = plan.fits();
  report.lines.push_back(fmt::format("layout {}: {} ranks", to_string(layout), layout.world_size()));
  report.lines.push_back(batch_line(job, layout));
  table_of(plan, report);
  report.more["per_rank"] = Json::array();
  for (const RankClass& ranks : plan.classes) report.more["per_rank"].push_back(json_of(ranks, plan.reserve));
  for (const std::string& line : gradient_lines(job, layout, memory.accumulators)) report.lines.push_back(line);
  const StepEstimate step = estimate_step(job, layout);
  for (const GroupPlacement& placement : placement_of(job, layout)) {
    report.lines.push_back("placement: " + to_string(placement));
  }
  report.more["placement"] = json_of(placement_of(job, layout));
  report.more["bubble"] = step.bubble;
  report.more["warnings"] = warnings_of(job, layout);
  for (const std::string& warning : warnings_of(job, layout)) report.lines.push_back("warning: " + warning);
  const RankClass& worst = plan.classes[plan.worst];
  report.lines.push_back(fmt::format("{}: stage {} needs {} of {}, {} {}", plan.fits() ? "fits" : "DOES NOT FIT",
                                     worst.pp, bytes_text(plan.needed()), bytes_text(memory.gpu_memory),
                                     bytes_text(std::abs(plan.margin())), plan.fits() ? "spare" : "too much"));
  if (!plan.fits()) {
    report.exit_code = does_not_fit;
    say_choices(job, {.memory = memory, .ranks = layout.world_size(), .count = 3}, report);
  }
}

// Why no layout can have so many ranks.
std::string ranks_mistake(const Job& job, int ranks) {
  std::vector<std::string> near;
  for (const int size : world_sizes_near(job, ranks)) near.push_back(fmt::format("{}", size));
  return fmt::format(
      "--ranks {}: no layout of this job has so many: dp x tp x pp x cp of divisors of {} dp, {} tp and "
      "{} cp lanes and up to {} stages; the nearest are {}",
      ranks, job.lanes.dp, job.lanes.tp, job.lanes.cp, job.model.layers, join(near, " and "));
}

// The layout that was asked for, or what is wrong with it.
std::optional<Layout> given_layout(const FitArguments& arguments, const Job& job, std::vector<std::string>& mistakes) {
  Loaded<Layout> layout = parse_layout(arguments.layout, "--layout " + arguments.layout);
  mistakes.insert(mistakes.end(), layout.mistakes.begin(), layout.mistakes.end());
  if (!layout) return std::nullopt;
  for (const std::string& mistake : mistakes_and_remedies(*layout, job)) mistakes.push_back("--layout: " + mistake);
  if (mistakes.empty() && arguments.ranks > 0 && layout->world_size() != arguments.ranks) {
    Layout wish = *layout;
    mistakes.push_back(
        fmt::format("--layout {} has {} ranks ({} dp x {} tp x {} pp x {} cp) and --ranks is {}: leave "
                    "one of them out",
                    to_string(wish), wish.world_size(), wish.dp, wish.tp, wish.pp, wish.cp, arguments.ranks));
  }
  return *layout;
}

VerbResult work(const FitArguments& arguments, const CommonOptions& common) {
  VerbResult result;
  Loaded<Job> job = load_job(arguments.job, {.set = common.set, .properties = {}, .world = {}, .planned_only = true});
  result.mistakes = job.mistakes;
  if (!common.mutant.empty()) result.mistakes.emplace_back("--mutant: fit runs nothing");
  const auto gpu_memory = parse_bytes(arguments.gpu_memory);
  if (!gpu_memory || *gpu_memory <= 0) {
    result.mistakes.push_back(fmt::format(
        "--gpu-memory is `{}`: give a size above 0 with its unit, such as 80GB or 80GiB", arguments.gpu_memory));
  }
  if (!result.mistakes.empty()) return result;
  std::optional<Layout> layout;
  if (!arguments.layout.empty()) layout = given_layout(arguments, *job, result.mistakes);
  if (arguments.layout.empty() && arguments.ranks > 0) {
    const std::vector<int> near = world_sizes_near(*job, arguments.ranks);
    if (std::find(near.begin(), near.end(), arguments.ranks) == near.end()) {
      result.mistakes.push_back(ranks_mistake(*job, arguments.ranks));
    }
  }
  if (!result.mistakes.empty()) return result;

  Report& report = result.report;
  report.more["job"] = job->name;
  report.more["gpu_memory"] = *gpu_memory;
  const MemoryOptions memory{.gpu_memory = *gpu_memory,
                             .accumulators = arguments.one_accumulator ? Accumulators::one : Accumulators::by_lane};
  say_job(*job, report);
  if (layout) {
    say_layout(*job, *layout, memory, report);
  } else {
    SearchOptions search{.memory = memory};
    if (arguments.ranks > 0) search.ranks = arguments.ranks;
    report.more["per_rank"] = Json::array();
    say_choices(*job, search, report);
    if (report.more["layouts"].empty()) report.exit_code = does_not_fit;
  }
  report.verdict = verdict_of_exit_code(report.exit_code);
  return result;
}

}  // namespace

Work add_fit(CLI::App& app) {
  auto arguments = std::make_shared<FitArguments>();
  app.add_option("job", arguments->job, "Job file; of any shape, also one that this engine cannot run")->required();
  app.add_option("--gpu-memory", arguments->gpu_memory, "Memory of one GPU")->capture_default_str();
  app.add_option("--layout", arguments->layout,
                 "dp=8,tp=8,pp=4,cp=1,ep=1,zero=1,sequence_parallel,schedule=1f1b,virtual_stages=1,recompute=layer,"
                 "prefetch,bucket=268435456: those that differ from one rank. Left out: which layouts fit");
  app.add_option("--ranks", arguments->ranks, "Without a layout: on so many ranks; else the fewest that fit")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag(
      "--one-accumulator", arguments->one_accumulator,
      "A rank adds its gradients into one accumulator, not one for each lane: as trainers do whose bits depend "
      "on the layout");
  return [arguments](const CommonOptions& common, Streams) { return work(*arguments, common); };
}

}  // namespace firedrill
