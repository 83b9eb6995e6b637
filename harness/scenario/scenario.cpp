#include "harness/scenario/scenario.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "engine/job/limits.h"
#include "engine/job/planner.h"
#include "faults/budget.h"
#include "harness/scenario/fields.h"
#include "harness/scenario/recovery_mistakes.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;

struct Text {
  std::string content;
  std::string error;  // empty: it was read
};

Text read_text(const fs::path& file) {
  std::error_code failed;
  if (!fs::exists(file, failed)) return {.content = "", .error = "there is no such file"};
  if (fs::is_directory(file, failed)) return {.content = "", .error = "this is a directory, a file is expected"};
  std::ifstream stream(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) return {.content = "", .error = "it cannot be read"};
  return {.content = std::move(content), .error = ""};
}

std::shared_ptr<const Source> source_of(const fs::path& file, int order) {
  return std::make_shared<const Source>(Source{.name = file.string(), .directory = file.parent_path(), .order = order});
}

// A setting as a node that knows where it came from.
struct PlacedSetting {
  Setting setting;
  Node value;
};

PlacedSetting from_argument(const std::string& argument, int order, std::vector<Mistake>& mistakes) {
  auto source = std::make_shared<const Source>(Source{.name = "--set " + argument, .order = order});
  const std::size_t equals = argument.find('=');
  PlacedSetting placed;
  if (equals == std::string::npos || equals == 0) {
    const Place place{.source = source};
    mistakes.push_back({place, "give path=value, as in job.steps=8"});
    return placed;
  }
  placed.setting = {.path = argument.substr(0, equals), .value = argument.substr(equals + 1)};
  placed.value = parse_yaml(placed.setting.value, source, mistakes);
  const auto forget_lines = [&source](auto&& self, Node& node) -> void {
    node.place = {.source = source};
    for (Node& item : node.items) self(self, item);
    for (Entry& entry : node.entries) {
      entry.key_place = node.place;
      self(self, entry.value);
    }
  };
  forget_lines(forget_lines, placed.value);
  return placed;
}

// One loading: what is read goes through `reader`, so that all mistakes come out together.
class Loading {
 public:
  explicit Loading(const LoadOptions& options) : options_(options) {
    for (const std::string& argument : options.set) {
      PlacedSetting placed = from_argument(argument, 1000, reader_.mistakes());
      if (placed.setting.path.empty()) continue;
      if (placed.setting.path.starts_with("job.")) {
        job_settings_.push_back(std::move(placed));
      } else {
        own_settings_.push_back(std::move(placed));
      }
    }
  }

  // `prefix` goes before the path of every field of the job, so that a scenario's own paths stay apart.
  Node read_job_tree(std::string_view text, const fs::path& file) {
    Node root = parse_yaml(text, source_of(file, 1), reader_.mistakes());
    for (const PlacedSetting& placed : job_settings_) {
      set_at(root, std::string_view(placed.setting.path).substr(4), placed.value, reader_.mistakes());
    }
    return root;
  }

  bool usable(const Node& root, std::string_view what) {
    if (!reader_.mistakes().empty() && root.kind != Node::Kind::mapping) return false;
    if (root.kind == Node::Kind::mapping) return true;
    reader_.mistake(root.place, "",
                    root.kind == Node::Kind::null
                        ? fmt::format("the file is empty: a {} opens with `schema: firedrill.{}/1`", what, what)
                        : fmt::format("a {} must be a mapping, not {}", what, describe(root)));
    return false;
  }

  Job read_job(std::string_view text, const fs::path& file) {
    Job job;
    job.name = file.stem().string();
    Node root = read_job_tree(text, file);
    if (!usable(root, "job")) return job;
    Reader fields;
    fields.remember("", root.place);
    JobText visited{job};
    read_value(fields, root, "", visited);
    for (const std::string& message : mistakes_in(job)) add_semantic(fields, message);
    if (!options_.planned_only) {
      for (const std::string& message : cannot_run(job)) add_semantic(fields, message);
    }
    job_is_good_ = fields.mistakes().empty();
    take(fields.mistakes());
    return job;
  }

  // A mistake found by meaning; the message opens with the path it is about. It says nothing new where the same part
  // could not be read.
  void add_semantic(Reader& fields, const std::string& message) {
    const std::string path = message.substr(0, message.find(' '));
    if (fields.is_bad(path.substr(0, path.find('.')))) return;
    fields.mistakes().push_back({fields.place_of(path), message});
  }

  void take(std::vector<Mistake>& found) {
    for (Mistake& mistake : found) reader_.mistakes().push_back(std::move(mistake));
  }

  std::vector<std::string> listed_mistakes() {
    std::vector<Mistake>& found = reader_.mistakes();
    std::stable_sort(found.begin(), found.end(), [](const Mistake& a, const Mistake& b) {
      const auto key = [](const Mistake& m) {
        return std::tuple(m.place.source ? m.place.source->order : 0, m.place.line, m.place.column);
      };
      return key(a) < key(b);
    });
    std::vector<std::string> listed;
    for (const Mistake& mistake : found) {
      const std::string text = to_string(mistake);
      if (std::find(listed.begin(), listed.end(), text) == listed.end()) listed.push_back(text);
    }
    return listed;
  }

  Scenario read_scenario(std::string_view text, const fs::path& file);
  // Of the scenario that was read.
  std::vector<KindWeight> take_weights() { return std::move(weights_); }

  // For a job alone.
  void refuse_own_settings() {
    for (const PlacedSetting& placed : own_settings_) {
      reader_.mistake(
          placed.value.place, "",
          fmt::format("only a scenario has `{0}`: for a field of the job write job.{0}", placed.setting.path));
    }
  }

 private:
  void read_own_settings(const Node& root, const fs::path& file, Scenario& scenario);
  void read_named_job(const Node& root, const fs::path& file, Scenario& scenario);
  void check_meaning(Reader& fields, Scenario& scenario);

  const LoadOptions& options_;
  Reader reader_;
  std::vector<PlacedSetting> job_settings_;
  std::vector<PlacedSetting> own_settings_;
  std::vector<KindWeight> weights_;
  bool job_is_good_ = false;
};

struct ScenarioText {
  Scenario& scenario;
  std::string job;  // as written
  std::vector<KindWeight> weights = {};
};
template <class V>
void visit(V& v, ScenarioText& text) {
  Scenario& scenario = text.scenario;
  v.required("schema", Keyword{"firedrill.scenario/1"});
  v.field("subject", Keyword{"engine"});
  v.required("job", text.job);
  v.known("set");
  v.field("layout", scenario.layout);
  v.field("world", scenario.world);
  v.field("faults", scenario.faults);
  v.field("recovery", scenario.recovery);
  v.field("expect", scenario.expect);
  v.field("crash", scenario.crash);
  v.field("explore", ExploreText{text.weights}, text.weights.empty());
  v.field("seed", scenario.seed);
}

// `set:` of the file: settings of the job only, since the rest can be written directly. Those of the command line come
// later and so win.
void Loading::read_own_settings(const Node& root, const fs::path& file, Scenario& scenario) {
  std::vector<PlacedSetting> settings;
  if (const Node* set = root.find("set"); set != nullptr && set->kind != Node::Kind::null) {
    if (set->kind != Node::Kind::mapping) reader_.expected(*set, "set", "a mapping of paths to values");
    for (const Entry& entry : set->entries) {
      if (!entry.key.starts_with("job.")) {
        reader_.mistake(entry.key_place, "set",
                        fmt::format("`{}` in set: only fields of the job can be set here (job.steps: 8)", entry.key));
      } else if (entry.value.kind != Node::Kind::scalar) {
        reader_.expected(entry.value, "set." + entry.key, "a single value");
      } else {
        settings.push_back({{.path = entry.key, .value = entry.value.text}, entry.value});
      }
    }
  }
  for (PlacedSetting& placed : job_settings_) settings.push_back(std::move(placed));
  job_settings_ = std::move(settings);
  for (const PlacedSetting& placed : job_settings_) {
    Setting setting = placed.setting;
    // Printed again it stands in this file, whose directory is not the one it was meant for.
    if (setting.path == "job.data.corpus") {
      setting.value = fs::absolute(placed.value.place.source->directory / setting.value).lexically_normal().string();
    }
    std::erase_if(scenario.job_settings, [&setting](const Setting& other) { return other.path == setting.path; });
    scenario.job_settings.push_back(std::move(setting));
  }
  static_cast<void>(file);
}

void Loading::read_named_job(const Node& root, const fs::path& file, Scenario& scenario) {
  const Node* named = root.find("job");
  if (named == nullptr || named->kind != Node::Kind::scalar || named->text.empty()) return;
  scenario.job_path =
      (named->place.line > 0 ? file.parent_path() / named->text : fs::path(named->text)).lexically_normal();
  const Text job_text = read_text(scenario.job_path);
  if (!job_text.error.empty()) {
    reader_.mistake(named->place, "job", fmt::format("job {}: {}", scenario.job_path.string(), job_text.error));
    return;
  }
  scenario.job = read_job(job_text.content, scenario.job_path);
}

// What can be read and yet cannot work. With `expect: refuse` that is the point of the scenario.
void Loading::check_meaning(Reader& fields, Scenario& scenario) {
  std::vector<Mistake> found;
  if (!fields.is_bad("layout")) {
    for (const std::string& message : mistakes_and_remedies(scenario.layout, scenario.job)) {
      found.push_back({fields.place_of(message.substr(0, message.find(' '))), message});
    }
  }
  if (scenario.recovery.layout && !fields.is_bad("recovery")) {
    for (const std::string& message : mistakes_and_remedies(*scenario.recovery.layout, scenario.job)) {
      const std::string full = "recovery." + message;
      found.push_back({fields.place_of(full.substr(0, full.find(' '))), full});
    }
  }
  if (!fields.is_bad("recovery") && !fields.is_bad("layout")) {
    for (const std::string& message : mistakes_in_recovery(scenario)) {
      found.push_back({fields.place_of(message.substr(0, message.find(' '))), message});
    }
  }
  const bool layout_fits = found.empty() && !fields.is_bad("layout");
  for (std::size_t i = 0; i < scenario.faults.size() && layout_fits; ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const std::string path = fmt::format("faults[{}]", i);
    if (fields.is_bad(path)) continue;
    for (const std::string& message :
         mistakes_in_fault(fault, scenario.job, layout_for(fault, scenario.layout, scenario.recovery.layout))) {
      found.push_back({fields.place_of(path + "." + message.substr(0, message.find(' '))), message});
    }
    const FaultKindInfo& info = fault_kinds()[static_cast<std::size_t>(fault.kind)];
    if (scenario.world == WorldKind::process && !info.in_process_world) {
      found.push_back(
          {fields.place_of(path), fmt::format("{} exists in the sim world only: use `world: sim`", info.name)});
    }
  }
  const bool lifted =
      scenario.expect.kind == Expectation::Kind::liveness || scenario.expect.kind == Expectation::Kind::fail;
  const auto refuse_plan = [&](const std::vector<std::string>& messages) {
    for (const std::string& message : messages) {
      const std::string path = message.substr(0, message.find(' '));
      found.push_back({fields.place_of(path.starts_with("faults[") ? path : "faults"), message});
    }
  };
  if (!fields.is_bad("faults")) refuse_plan(mistakes_in_number(scenario.faults));
  if (layout_fits && !lifted && !fields.is_bad("faults") && !fields.is_bad("recovery")) {
    refuse_plan(mistakes_in_budget(scenario.faults, scenario.job, scenario.recovery.budget));
    refuse_plan(mistakes_in_cover(scenario.faults, scenario.layout));
  }
  if (scenario.expect.kind == Expectation::Kind::refuse) {
    for (const Mistake& mistake : found) scenario.refusals.push_back(to_string(mistake));
  } else {
    take(found);
  }
}

Scenario Loading::read_scenario(std::string_view text, const fs::path& file) {
  Scenario scenario;
  scenario.path = file.string();
  Node root = parse_yaml(text, source_of(file, 0), reader_.mistakes());
  for (const PlacedSetting& placed : own_settings_) {
    set_at(root, placed.setting.path, placed.value, reader_.mistakes());
  }
  if (!usable(root, "scenario")) return scenario;
  Reader fields;
  fields.remember("", root.place);
  ScenarioText visited{scenario, ""};
  read_value(fields, root, "", visited);
  weights_ = std::move(visited.weights);
  if (options_.world) scenario.world = *options_.world;
  if (scenario.crash && (scenario.crash->attempt < 1 || scenario.crash->step < 0)) {
    fields.mistake(fields.place_of("crash.from"), "crash",
                   fmt::format("crash.from is step {} of attempt {}: give an attempt from 1 and a step from 0",
                               scenario.crash->step, scenario.crash->attempt));
  }
  const std::vector<std::string>& known = options_.properties;
  const std::string& property = scenario.expect.property;
  if (!property.empty() && !known.empty() && std::find(known.begin(), known.end(), property) == known.end()) {
    const auto near = nearest(property, known);
    fields.mistake(fields.place_of("expect.fail"), "expect",
                   fmt::format("there is no property `{}`: {}", property,
                               near ? fmt::format("did you mean `{}`?", *near) : "see `firedrill list properties`"));
  }
  read_own_settings(root, file, scenario);
  read_named_job(root, file, scenario);
  if (job_is_good_) check_meaning(fields, scenario);
  take(fields.mistakes());
  return scenario;
}

template <class T>
Loaded<T> loaded(T value, Loading& loading) {
  Loaded<T> result{.value = std::nullopt, .mistakes = loading.listed_mistakes()};
  if (result.mistakes.empty()) result.value = std::move(value);
  return result;
}

}  // namespace

Loaded<Scenario> parse_scenario(std::string_view text, const fs::path& file, const LoadOptions& options) {
  Loading loading(options);
  Scenario scenario = loading.read_scenario(text, file);
  return loaded(std::move(scenario), loading);
}

std::vector<KindWeight> parse_weights(std::string_view text, const fs::path& file, const LoadOptions& options) {
  Loading loading(options);
  static_cast<void>(loading.read_scenario(text, file));
  return loading.take_weights();
}

std::vector<KindWeight> load_weights(const fs::path& file, const LoadOptions& options) {
  return parse_weights(read_text(file).content, file, options);
}

Loaded<Job> parse_job(std::string_view text, const fs::path& file, const LoadOptions& options) {
  Loading loading(options);
  loading.refuse_own_settings();
  Job job = loading.read_job(text, file);
  return loaded(std::move(job), loading);
}

Loaded<Scenario> load_scenario(const fs::path& file, const LoadOptions& options) {
  const Text text = read_text(file);
  if (!text.error.empty()) return {.value = std::nullopt, .mistakes = {file.string() + ": " + text.error}};
  return parse_scenario(text.content, file, options);
}

Loaded<Job> load_job(const fs::path& file, const LoadOptions& options) {
  const Text text = read_text(file);
  if (!text.error.empty()) return {.value = std::nullopt, .mistakes = {file.string() + ": " + text.error}};
  return parse_job(text.content, file, options);
}

bool is_scenario_file(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    if (line.empty() || line.starts_with('#') || line.starts_with("---")) continue;
    return line.starts_with("schema:") && line.find("firedrill.scenario/") != std::string::npos;
  }
  return false;
}

}  // namespace firedrill
