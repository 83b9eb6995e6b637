#include "harness/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "engine/base/text.h"
#include "harness/cli/version.h"
#include "harness/cli/write_file.h"

namespace firedrill {
namespace {

constexpr int bad_input = 1;
constexpr int harness_error = 4;

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

int unknown_verb(const std::string& word, std::ostream& err) {
  const auto names = verb_names();
  const auto near = nearest(word, names);
  err << fmt::format("firedrill: unknown verb `{}`{}\nThe verbs are: {}\n", word,
                     near ? fmt::format(": did you mean `{}`?", *near) : "", join(names, ", "));
  return bad_input;
}

// CLI11 says that an option was not expected; here it is said which one may have been meant.
std::string option_hint(const CLI::App& verb, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string word = argument.substr(0, argument.find('='));
    if (!word.starts_with("--") || std::find(known.begin(), known.end(), word) != known.end()) continue;
    if (const auto near = nearest(word, known)) return fmt::format("{}: did you mean {}?\n", word, *near);
  }
  return "";
}

bool write_or_say(const std::string& file, const std::string& text, std::ostream& err) {
  const Status written = write_file(file, text);
  if (!written) err << fmt::format("firedrill: {}\n", describe(written.error()));
  return static_cast<bool>(written);
}

// The runs that are not as expected; of the others nobody asked.
Report without_good_runs(const Report& report) {
  Report bad = report;
  std::erase_if(bad.runs, [](const RunReport& run) { return met(run); });
  if (report.exit_code == 0) bad.lines.clear();
  // Of several runs that are all good one line says so, as a log without any looks like nothing done.
  if (report.exit_code == 0 && report.runs.size() > 1) {
    bad.lines.push_back(
        fmt::format("PASS: {0} runs, {0} as expected, 0 not, {1:.1f} s", report.runs.size(), report.duration));
  }
  return bad;
}

int write_report(const Report& report, const CommonOptions& common, Streams streams) {
  bool written = true;
  std::ostream& text = common.json == "-" ? streams.err : streams.out;
  text << to_text(common.quiet ? without_good_runs(report) : report) << std::flush;
  if (common.json == "-") {
    streams.out << to_json(report) << std::flush;
  } else if (!common.json.empty()) {
    written = write_or_say(common.json, to_json(report), streams.err) && written;
  }
  if (!common.junit.empty()) written = write_or_say(common.junit, to_junit(report), streams.err) && written;
  if (!common.out.empty() && std::filesystem::is_directory(common.out)) {
    written = write_or_say((common.out / "report.json").string(), to_json(report), streams.err) && written;
  }
  return written ? report.exit_code : harness_error;
}

int refuse(Report report, const std::vector<std::string>& mistakes, const CommonOptions& common, Streams streams) {
  for (const std::string& mistake : mistakes) streams.err << mistake << "\n";
  if (mistakes.size() > 1) streams.err << fmt::format("firedrill: {} mistakes; nothing was run\n", mistakes.size());
  report.verdict = RunVerdict::refused;
  report.exit_code = bad_input;
  report.more["mistakes"] = mistakes;
  report.runs.clear();
  report.lines.clear();
  if (common.json.empty() && common.junit.empty()) return bad_input;
  CommonOptions files = common;
  files.out.clear();
  write_report(report, files, streams);
  return bad_input;
}

// --out is made before anything runs, so that what cannot be written is not found out after hours. What a verb then
// refuses leaves nothing behind.
class OutDirectory {
 public:
  explicit OutDirectory(std::filesystem::path place) : place_(std::move(place)) {}
  OutDirectory(const OutDirectory&) = delete;
  OutDirectory& operator=(const OutDirectory&) = delete;
  ~OutDirectory() {
    std::error_code not_empty;
    if (made_) std::filesystem::remove(place_, not_empty);
  }
  // What is wrong with it; empty: nothing.
  std::string make() {
    std::error_code failed;
    made_ = std::filesystem::create_directories(place_, failed);
    if (!failed) return {};
    return fmt::format("--out {}: it cannot be made: {}; give a place that is writable", place_.string(),
                       failed.message());
  }

 private:
  std::filesystem::path place_;
  bool made_ = false;
};

// An option that a verb does not heed would promise what does not happen.
std::vector<std::string> unheeded(const Verb& verb, const CLI::App& parser) {
  std::vector<std::string> mistakes;
  for (const std::string& option : split(std::string(verb.unheeded), ' ')) {
    if (option.empty() || parser.count(option) == 0) continue;
    mistakes.push_back(fmt::format("{}: `{}` has no use for it; leave it out", option, verb.name));
  }
  return mistakes;
}

// Of what is to be written or read nothing is, if a name comes out empty: mostly of a variable that is not set.
std::vector<std::string> empty_names(const CLI::App& parser) {
  std::vector<std::string> mistakes;
  for (const char* name : {"--json", "--junit", "--out", "--html", "--trace", "--metrics", "--against", "--restore"}) {
    const CLI::Option* const option = parser.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0 || !option->as<std::string>().empty()) continue;
    mistakes.push_back(fmt::format("{} is empty: give a value, or leave it out", name));
  }
  return mistakes;
}

// Of a verb that reads what was kept: a report of its own may not take the place of that.
std::vector<std::string> over_kept(const CLI::App& parser, const CommonOptions& common) {
  std::vector<std::string> mistakes;
  for (const char* name : {"run", "plan", "directory", "--against", "--restore"}) {
    const CLI::Option* const option = parser.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0) continue;
    const auto found =
        mistakes_in_targets_of(option->as<std::string>(), {{"--json", common.json}, {"--junit", common.junit}});
    mistakes.insert(mistakes.end(), found.begin(), found.end());
  }
  return mistakes;
}

int do_work(const Verb& verb, const Work& work, const CLI::App& parser, const CommonOptions& common, Streams streams) {
  const auto began = std::chrono::steady_clock::now();
  Report blank{.verb = std::string(verb.name)};
  blank.environment = {.version = std::string(version()),
                       .commit = std::string(commit()),
                       .numerics_key = "",
                       .cores = static_cast<int>(std::thread::hardware_concurrency())};
  blank.seed = common.seed.value_or(1);
  auto mistakes = mistakes_in_targets({{"--json", common.json}, {"--junit", common.junit}},
                                      verb.keeps_files ? common.out : std::filesystem::path());
  for (std::string& mistake : empty_names(parser)) mistakes.push_back(std::move(mistake));
  for (std::string& mistake : over_kept(parser, common)) mistakes.push_back(std::move(mistake));
  if (!mistakes.empty()) return refuse(blank, mistakes, {}, streams);
  mistakes = mistakes_in(common);
  for (std::string& mistake : unheeded(verb, parser)) mistakes.push_back(std::move(mistake));
  OutDirectory out(common.out);
  if (!common.out.empty() && !verb.keeps_files) {
    mistakes.push_back(fmt::format("--out: `{}` keeps nothing; --json FILE writes its report", verb.name));
  } else if (!common.out.empty() && mistakes.empty()) {
    if (std::string mistake = out.make(); !mistake.empty()) mistakes.push_back(std::move(mistake));
  }
  if (!mistakes.empty()) return refuse(blank, mistakes, common, streams);
  VerbResult result = work(common, streams);
  Report& report = result.report;
  report.verb = blank.verb;
  // Without --seed it is the scenario's, of several the first one's.
  if (common.seed) report.seed = *common.seed;
  if (!common.seed && !report.runs.empty()) report.seed = report.runs.front().seed;
  const std::string numerics_key = report.environment.numerics_key;
  report.environment = blank.environment;
  report.environment.numerics_key = numerics_key;
  report.duration = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!result.mistakes.empty()) return refuse(report, result.mistakes, common, streams);
  return write_report(report, common, streams);
}

int parse_and_work(const std::vector<std::string>& arguments, Streams streams) {
  CLI::App app("Firedrill proves that a training run can be killed and resumed without changing its result.",
               "firedrill");
  app.set_version_flag("--version", fmt::format("firedrill {} ({})", version(), commit()));
  app.require_subcommand(1);
  std::vector<std::unique_ptr<CommonOptions>> common;
  std::vector<Work> work;
  std::vector<CLI::App*> parsers;
  for (const Verb& verb : verbs()) {
    CLI::App* parser = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    common.push_back(std::make_unique<CommonOptions>());
    work.push_back(verb.add(*parser));
    add_common(*parser, *common.back());
    parsers.push_back(parser);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const auto used = app.get_subcommands();
    streams.out << (used.empty() ? app.help() : used.front()->help("firedrill"));
    return 0;
  } catch (const CLI::CallForVersion& wanted) {
    streams.out << wanted.what() << "\n";
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto used = app.get_subcommands();
    streams.err << fmt::format("firedrill: {}\n", error.what());
    if (!used.empty()) streams.err << option_hint(*used.front(), arguments);
    streams.err << fmt::format("See firedrill {}{}--help\n", used.empty() ? "" : used.front()->get_name(),
                               used.empty() ? "" : " ");
    return bad_input;
  }
  for (std::size_t i = 0; i < parsers.size(); ++i) {
    if (parsers[i]->parsed()) return do_work(verbs()[i], work[i], *parsers[i], *common[i], streams);
  }
  return bad_input;
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"run", "Run scenarios and judge them", add_run, true},
      {"golden", "Record or verify what an undisturbed run gives", add_golden, false, "--seed"},
      {"layouts", "Compare every layout of a job with its golden", add_layouts, false, "--filter"},
      {"replay", "Run a saved plan again: same history", add_replay, true, "--filter"},
      {"shrink", "Shrink a saved plan that fails to the fewest and simplest faults", add_shrink, true, "--filter"},
      {"sweep", "Hit every position with one kind of fault, until it no longer fires", add_sweep, false, "--filter"},
      {"explore", "Try drawn combinations of job options, layout, faults and schedule", add_explore, true, "--filter"},
      {"mutants", "Run broken engine parts, each of which a property must catch", add_mutants, true, "--mutant"},
      {"crashcheck", "Recover from every content of the disk that a power loss may leave", add_crashcheck, false,
       "--filter"},
      {"audit", "Verify, list and compare checkpoints with a second decoder", add_audit, false,
       "--seed --mutant --set --filter"},
      {"preflight", "Go or no-go before a long run: machine, storage, network, drills", add_preflight, false,
       "--seed --filter"},
      {"fit", "Plan a job's memory: does a layout fit, or which ones do", add_fit, false, "--seed --filter"},
      {"diagnose", "Say who holds a kept run up, and why", add_diagnose, false, "--seed --mutant --set --filter"},
      {"report", "Tell a kept run as metrics, trace or page", add_report, false, "--seed --mutant --set --filter"},
      {"list", "List faults, properties, scenarios, mutants or jobs", add_list, false, "--seed --mutant --set"},
  };
  return all;
}

int run_command_line(const std::vector<std::string>& arguments, Streams streams) {
  try {
    if (!arguments.empty() && !arguments.front().starts_with('-')) {
      const auto names = verb_names();
      if (std::find(names.begin(), names.end(), arguments.front()) == names.end()) {
        return unknown_verb(arguments.front(), streams.err);
      }
    }
    return parse_and_work(arguments, streams);
  } catch (const std::exception& error) {
    streams.err << fmt::format("firedrill: an error of our own: {}\n", error.what());
    return harness_error;
  }
}

}  // namespace firedrill
