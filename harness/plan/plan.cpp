#include "harness/plan/plan.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/scenario/fields.h"

namespace firedrill {
namespace {

struct HexDigest {
  std::optional<Digest>& digest;
};
void read_value(Reader& reader, const Node& node, const std::string& path, HexDigest hex) {
  hex.digest = node.kind == Node::Kind::scalar ? Digest::from_hex(node.text) : std::nullopt;
  if (!hex.digest) reader.expected(node, path, "a digest of 32 hexadecimal digits");
}
Json write_value(const HexDigest& hex) { return hex.digest ? Json(hex.digest->hex()) : Json(); }

// Texts that may be empty, unlike those of a scenario.
struct FreeText {
  std::string& text;
};
void read_value(Reader& reader, const Node& node, const std::string& path, FreeText text) {
  if (node.kind != Node::Kind::scalar) return reader.expected(node, path, "a text");
  text.text = node.text;
}
Json write_value(const FreeText& text) { return text.text; }

struct PlanText {
  Plan& plan;
};
template <class V>
void visit(V& v, PlanText& text) {
  Plan& plan = text.plan;
  v.required("schema", Keyword{"firedrill.plan/1"});
  v.field("scenario", FreeText{plan.scenario});
  v.field("scenario_path", FreeText{plan.scenario_path});
  v.required("run_id", plan.run_id);
  v.required("job_name", plan.job.name);
  v.required("job", JobText{plan.job});
  v.required("layout", plan.layout);
  v.required("world", plan.world);
  v.required("faults", plan.faults);
  v.required("recovery", plan.recovery);
  v.required("expect", plan.expect);
  v.required("seed", plan.seed);
  v.field("mutant", FreeText{plan.mutant});
  v.field("accounting", plan.accounting, !plan.accounting);
  v.field("corpus_digest", HexDigest{plan.corpus_digest});
  v.field("settings", plan.settings);
}

Error with_errno(std::string_view what, const std::filesystem::path& file) {
  return Error{.code = errno == ENOENT ? Code::not_found : Code::io_error,
               .message = fmt::format("{} {}: {}", what, file.string(), std::strerror(errno))};
}

}  // namespace

std::string run_id_of(const Job& job) { return fmt::format("{}-{}", job.name, digest_of_job(job).hex().substr(0, 8)); }

Plan make_plan(const Scenario& scenario, const PlanOptions& options) {
  Plan plan;
  plan.scenario = scenario.name();
  plan.scenario_path = scenario.path;
  plan.job = scenario.job;
  // The plan is stored elsewhere, and what it names must still be found from there.
  plan.job.data.corpus = std::filesystem::absolute(plan.job.data.corpus).lexically_normal().string();
  plan.run_id = run_id_of(plan.job);
  plan.layout = scenario.layout;
  plan.world = scenario.world;
  plan.faults = scenario.faults;
  plan.recovery = scenario.recovery;
  plan.expect = scenario.expect;
  plan.seed = options.seed.value_or(scenario.seed.value_or(1));
  plan.mutant = options.mutant;
  plan.settings = options.settings;
  return plan;
}

std::string to_json(const Plan& plan) {
  Plan copy = plan;
  return write_value(PlanText{copy}).dump(2) + "\n";
}

Result<Plan> plan_from_json(std::string_view text, const std::string& origin) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("{} is not JSON", origin),
                 .hint = "give a plan.json that a run has written, or the folder it lies in"};
  }
  Reader reader;
  Plan plan;
  const auto source = std::make_shared<const Source>(Source{.name = origin});
  const Node root = from_json(json, source);
  reader.remember("", root.place);
  PlanText visited{plan};
  read_value(reader, root, "", visited);
  if (!reader.mistakes().empty()) {
    std::vector<std::string> listed;
    for (const Mistake& mistake : reader.mistakes()) listed.push_back(to_string(mistake));
    return Error{.code = Code::invalid_input,
                 .message = join(listed, "\n"),
                 .hint = "a plan is written by `firedrill run --out DIR`, not by hand"};
  }
  return plan;
}

Status write_plan(const Plan& plan, const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  stream << to_json(plan);
  stream.close();
  if (!stream) return with_errno("cannot write the plan", file);
  return {};
}

Result<Plan> read_plan(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return with_errno("cannot read the plan", file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return plan_from_json(text, file.string());
}

}  // namespace firedrill
