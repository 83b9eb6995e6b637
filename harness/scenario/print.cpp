#include "harness/scenario/fields.h"
#include "harness/scenario/scenario.h"

namespace firedrill {

std::string print(const Job& job, const std::filesystem::path& directory) {
  Job copy = job;
  return to_yaml(write_value(JobText{copy, directory}));
}

std::string print(const Scenario& scenario, const std::filesystem::path& directory) {
  std::string job_path = scenario.job_path.string();
  Json json = {{"schema", "firedrill.scenario/1"}, {"job", write_value(PathText{job_path, directory})}};
  for (const Setting& setting : scenario.job_settings) json["set"][setting.path] = setting.value;
  json["layout"] = write_value(scenario.layout);
  json["world"] = write_value(scenario.world);
  if (!scenario.faults.empty()) json["faults"] = write_value(scenario.faults);
  json["recovery"] = write_value(scenario.recovery);
  json["expect"] = write_value(scenario.expect);
  if (scenario.crash) json["crash"] = write_value(*scenario.crash);
  if (scenario.seed) json["seed"] = *scenario.seed;
  return to_yaml(json);
}

}  // namespace firedrill
