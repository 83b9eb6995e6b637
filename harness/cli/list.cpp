// firedrill list faults|properties|scenarios|mutants|jobs
#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "engine/base/text.h"
#include "harness/check/properties.h"
#include "harness/cli/inputs.h"
#include "harness/cli/verb.h"
#include "harness/mutants/mutants.h"

namespace firedrill {
namespace {

struct ListArguments {
  std::string what;
  std::string directory = "scenarios";
};

struct Item {
  std::string name;
  std::string summary;
};

bool opens_with(const std::filesystem::path& file, std::string_view schema) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    if (line.starts_with("schema:")) return line.find(schema) != std::string::npos;
  }
  return false;
}

std::vector<Item> items_of(const ListArguments& arguments) {
  std::vector<Item> items;
  if (arguments.what == "faults") {
    for (const FaultKindInfo& fault : fault_kinds()) {
      const char* worlds = fault.in_process_world ? "both worlds" : "sim world";
      items.push_back({std::string(fault.name), fmt::format("{} ({})", fault.summary, worlds)});
    }
  } else if (arguments.what == "properties") {
    for (const Property& property : properties()) {
      items.push_back({std::string(property.name), std::string(property.summary)});
    }
  } else if (arguments.what == "mutants") {
    for (const Mutant& mutant : mutants()) {
      items.push_back({std::string(mutant.name), fmt::format("{} (for {})", mutant.summary, mutant.caught_by)});
    }
  } else {
    const std::string schema = arguments.what == "jobs" ? "firedrill.job/" : "firedrill.scenario/";
    for (const auto& file : yaml_files(arguments.directory)) {
      if (opens_with(file, schema)) items.push_back({file.string(), summary_of(file)});
    }
  }
  return items;
}

VerbResult work(const ListArguments& arguments, const CommonOptions& common) {
  VerbResult result;
  Report& report = result.report;
  report.more["items"] = nlohmann::ordered_json::array();
  std::vector<Item> items = items_of(arguments);
  std::erase_if(items, [&common](const Item& item) { return !matches_filter(common.filter, item.name); });
  std::size_t width = 0;
  for (const Item& item : items) width = std::max(width, item.name.size());
  for (const Item& item : items) {
    report.more["items"].push_back({{"name", item.name}, {"summary", item.summary}});
    report.lines.push_back(fmt::format("{:<{}}  {}", item.name, width, item.summary));
  }
  return result;
}

}  // namespace

Work add_list(CLI::App& app) {
  auto arguments = std::make_shared<ListArguments>();
  app.add_option("what", arguments->what, "faults | properties | scenarios | mutants | jobs")
      ->required()
      ->check(CLI::IsMember({"faults", "properties", "scenarios", "mutants", "jobs"}));
  app.add_option("--dir", arguments->directory, "Where scenarios and jobs are looked for")->capture_default_str();
  return [arguments](const CommonOptions& common, Streams) { return work(*arguments, common); };
}

}  // namespace firedrill
