// The golden as a file. Tensor names stand once; every step lists its digests in their order.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/golden/golden.h"

namespace firedrill {
namespace {

constexpr std::string_view schema = "firedrill.golden/1";

Error damaged(const std::filesystem::path& file, std::string_view what) {
  return Error{.code = Code::corrupted,
               .message = fmt::format("{} is not a golden: {}", file.string(), what),
               .hint = "record it again with `firedrill golden record JOB`"};
}

Digest parse_digest(const nlohmann::json& value) {
  const auto digest = Digest::from_hex(value.get<std::string>());
  if (!digest) throw std::invalid_argument("a digest is not 32 hexadecimal digits");
  return *digest;
}

GoldenStep parse_step(const nlohmann::json& value, std::size_t tensors) {
  GoldenStep step;
  step.state = parse_digest(value.at("state"));
  for (const auto& digest : value.at("tensors")) step.tensors.push_back(parse_digest(digest));
  if (step.tensors.size() != tensors) throw std::invalid_argument("a step has not one digest for every tensor");
  for (const auto& sample : value.at("samples"))
    step.samples.push_back({.epoch = sample.at(0), .sample = sample.at(1), .lane = sample.at(2)});
  return step;
}

Golden parse_golden(const nlohmann::json& value) {
  if (value.at("schema") != schema) throw std::invalid_argument("another schema");
  Golden golden;
  golden.job = value.at("job");
  golden.key.job = parse_digest(value.at("job_digest"));
  golden.key.corpus = parse_digest(value.at("corpus_digest"));
  golden.key.numerics = value.at("numerics_key");
  golden.tensors = value.at("tensors").get<std::vector<std::string>>();
  for (const auto& step : value.at("steps")) golden.steps.push_back(parse_step(step, golden.tensors.size()));
  if (golden.steps.empty()) throw std::invalid_argument("no steps");
  for (const GoldenStep& step : golden.steps) {
    if (digest_of_tensors(golden.tensors, step.tensors) != step.state)
      throw std::invalid_argument("a state digest is not that of its tensors");
  }
  return golden;
}

}  // namespace

Status write_golden(const Golden& golden, const std::filesystem::path& file) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < golden.steps.size(); ++i) {
    nlohmann::ordered_json step{{"step", i + 1}, {"state", golden.steps[i].state.hex()}};
    for (const GoldenSample& sample : golden.steps[i].samples)
      step["samples"].push_back({sample.epoch, sample.sample, sample.lane});
    for (const Digest& digest : golden.steps[i].tensors) step["tensors"].push_back(digest.hex());
    steps.push_back(std::move(step));
  }
  const nlohmann::ordered_json value{{"schema", schema},
                                     {"job", golden.job},
                                     {"job_digest", golden.key.job.hex()},
                                     {"corpus_digest", golden.key.corpus.hex()},
                                     {"numerics_key", golden.key.numerics},
                                     {"tensors", golden.tensors},
                                     {"steps", std::move(steps)}};
  std::ofstream out(file);
  out << value.dump(1) << '\n';
  out.close();
  if (!out) {
    return Error{.code = Code::io_error,
                 .message = fmt::format("cannot write {}", file.string()),
                 .hint = "check that the directory exists, can be written and has space"};
  }
  return {};
}

Result<Golden> read_golden(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Error{.code = Code::not_found, .message = fmt::format("no golden at {}", file.string())};
  std::stringstream text;
  text << in.rdbuf();
  try {
    return parse_golden(nlohmann::json::parse(text.str()));
  } catch (const std::exception& error) {
    return damaged(file, error.what());
  }
}

}  // namespace firedrill
