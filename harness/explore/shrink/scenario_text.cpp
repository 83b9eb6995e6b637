#include "harness/explore/shrink/scenario_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/base/text.h"
#include "harness/scenario/fields.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

std::string as_yaml(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// `job.a.b=value` for every leaf of `now` that `base` has not. What `base` alone has is not said: reading tells.
void add_differences(const Json& base, const Json& now, const std::string& path, std::vector<Setting>& settings) {
  for (const auto& [key, value] : now.items()) {
    const std::string here = fmt::format("{}.{}", path, key);
    const auto known = base.find(key);
    if (known != base.end() && *known == value) continue;
    if (value.is_object()) {
      add_differences(known != base.end() && known->is_object() ? *known : Json::object(), value, here, settings);
    } else {
      settings.push_back({.path = here, .value = as_yaml(value)});
    }
  }
}

Json fields_of(const Job& job) {
  Job copy = job;
  copy.data.corpus = fs::absolute(copy.data.corpus).lexically_normal().string();
  return write_value(JobText{copy});
}

// A field at its default is not written, so where the file's job has another value nothing above says so.
std::vector<Setting> back_to_defaults(const Job& base, const Job& job) {
  std::vector<Setting> settings;
  const auto add = [&settings](const char* path, auto before, auto now) {
    if (before != now) settings.push_back({.path = fmt::format("job.model.{}", path), .value = fmt::format("{}", now)});
  };
  if (!job.model.tied_embedding) add("tied_embedding", base.model.tied_embedding, false);
  if (job.model.experts == 0) add("experts", base.model.experts, 0);
  return settings;
}

Scenario scenario_of(const Plan& plan, const fs::path& file) {
  Scenario scenario;
  scenario.path = file.string();
  scenario.job = plan.job;
  scenario.layout = plan.layout;
  scenario.world = plan.world;
  scenario.faults = plan.faults;
  scenario.recovery = plan.recovery;
  scenario.expect = plan.expect;
  scenario.seed = plan.seed;
  return scenario;
}

// What a scenario decides of a plan.
std::string essence(Plan plan) {
  plan.scenario.clear();
  plan.scenario_path.clear();
  plan.run_id.clear();
  plan.job.name.clear();
  plan.mutant.clear();
  plan.settings.clear();
  plan.accounting = false;
  plan.corpus_digest.reset();
  for (FaultSpec& fault : plan.faults) fault.line = 0;
  return to_json(plan);
}

// Lines of at most 120 columns, unless a word is longer.
std::string commented(const std::string& comment) {
  constexpr std::size_t columns = 120;
  std::string text;
  for (const std::string& line : split(comment, '\n')) {
    std::size_t column = 1;
    text += '#';
    for (const std::string& word : split(line, ' ')) {
      if (column > 1 && column + 1 + word.size() > columns) {
        text += "\n#";
        column = 1;
      }
      text += ' ';
      text += word;
      column += 1 + word.size();
    }
    text += '\n';
  }
  return text;
}

// Empty: it can be read, and says the plan.
std::string trouble_with(const Scenario& read, const Plan& plan) {
  return essence(make_plan(read)) == essence(plan) ? "" : "it reads as another plan";
}

}  // namespace

Result<ScenarioText> scenario_text(const Plan& plan, const fs::path& file, std::span<const fs::path> job_files,
                                   const std::string& comment) {
  Scenario scenario = scenario_of(plan, file);
  const fs::path directory = file.parent_path();
  for (const fs::path& job_file : job_files) {
    const Loaded<Job> base = load_job(job_file);
    if (!base || base.value->name != plan.job.name) continue;
    scenario.job_path = job_file;
    scenario.job_settings.clear();
    add_differences(fields_of(*base.value), fields_of(plan.job), "job", scenario.job_settings);
    for (Setting& setting : back_to_defaults(*base.value, plan.job)) scenario.job_settings.push_back(setting);
    const std::string text = commented(comment) + print(scenario, directory);
    const Loaded<Scenario> read = parse_scenario(text, file);
    if (read && trouble_with(*read.value, plan).empty())
      return ScenarioText{.text = text, .job_file = {}, .job_text = {}};
  }
  // The job stands alone: its own text says all of it, and the scenario only names it.
  const fs::path job_file = directory / fmt::format("{}.job.yaml", file.stem().string());
  const std::string job_text = print(plan.job, directory);
  const Loaded<Job> alone = parse_job(job_text, job_file);
  scenario.job_path = job_file;
  scenario.job_settings.clear();
  const std::string text = commented(comment) + print(scenario, directory);
  if (!alone) {
    return Error{.code = Code::internal,
                 .message = fmt::format("the job cannot be read back: {}", join(alone.mistakes, "; "))};
  }
  return ScenarioText{.text = text, .job_file = job_file, .job_text = job_text};
}

std::vector<fs::path> job_files_of(const Plan& plan, const fs::path& directory) {
  std::vector<fs::path> files;
  if (!plan.scenario_path.empty()) {
    const Loaded<Scenario> scenario = load_scenario(plan.scenario_path);
    if (scenario) files.push_back(scenario.value->job_path);
    files.emplace_back(plan.scenario_path);  // a job may be explored without a scenario
  }
  std::vector<fs::path> below;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename() == fmt::format("{}.yaml", plan.job.name)) below.push_back(at->path());
  }
  std::ranges::sort(below);
  files.insert(files.end(), below.begin(), below.end());
  return files;
}

Status write_scenario(const Plan& plan, const fs::path& file, std::span<const fs::path> job_files,
                      const std::string& comment) {
  FD_TRY(const ScenarioText written, scenario_text(plan, file, job_files, comment));
  const auto write = [](const fs::path& path, const std::string& text) -> Status {
    std::ofstream stream(path, std::ios::binary);
    stream << text;
    stream.close();
    if (stream) return {};
    return Error{.code = Code::io_error,
                 .message = fmt::format("cannot write {}", path.string()),
                 .hint = "is its directory there, and writable?"};
  };
  if (!written.job_text.empty()) FD_TRY_VOID(write(written.job_file, written.job_text));
  FD_TRY_VOID(write(file, written.text));
  const Loaded<Scenario> read = load_scenario(file);
  const std::string trouble = read ? trouble_with(*read.value, plan) : join(read.mistakes, "; ");
  if (trouble.empty()) return {};
  return Error{.code = Code::internal, .message = fmt::format("{} was written, but {}", file.string(), trouble)};
}

}  // namespace firedrill
