// Finding: what a check before a long run has to say. A check gives findings, and the worst of them is its standing.
// Every finding says what was measured, what was needed, where, and what to do about it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace firedrill::preflight {

using Json = nlohmann::ordered_json;

enum class Standing : std::uint8_t {
  go,
  note,     // works, and is worth knowing: it costs time, or is near a limit
  skipped,  // does not apply, or is not asked for at this level
  unknown,  // could not be told
  no_go,
};
std::string_view to_string(Standing standing);  // "go", "note", "skipped", "unknown", "no-go"

struct Finding {
  Standing standing = Standing::go;
  std::string measured;
  std::string needed;
  std::string where;
  std::string remedy;     // empty: nothing is to be done
  bool of_speed = false;  // one look may be wrong about it: something else was busy just then
};

struct CheckResult {
  std::string name;
  std::string headline;  // what was measured, in a line of the table
  std::vector<Finding> findings;
  Json measured = Json::object();  // all numbers, for machines
  double seconds = 0.0;

  Standing standing() const;  // of the worst finding; go without any
};

// 0 go, 2 no-go, 4 could not tell. A no-go is one whatever else could not be told.
int exit_code_of(const std::vector<CheckResult>& results);

Json to_json(const CheckResult& result);
// One table of all checks, and below it each finding that is not a plain go.
std::vector<std::string> table_of(const std::vector<CheckResult>& results);
// Why a check is no pass, for a line of JUnit; empty: it is.
std::string complaint_of(const CheckResult& result);

}  // namespace firedrill::preflight
