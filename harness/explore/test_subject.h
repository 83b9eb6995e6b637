// Scenarios made ready for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/model/numerics.h"
#include "harness/explore/crashcheck.h"
#include "harness/explore/record.h"

namespace firedrill {

inline std::unique_ptr<ExploreSubject> subject_of(const std::string& scenario, std::vector<std::string> set = {},
                                                  const std::string& mutant = {}) {
  pin_numerics();
  const Loaded<Scenario> loaded = load_scenario("scenarios/storage/" + scenario + ".yaml", {.set = std::move(set)});
  FD_CHECK(static_cast<bool>(loaded.value), "{}", loaded.mistakes.empty() ? scenario : loaded.mistakes.front());
  auto made = ExploreSubject::make(make_plan(*loaded.value, {.mutant = mutant}), {});
  FD_CHECK(static_cast<bool>(made), "{}", describe(made.error()));
  return *std::move(made);
}

inline CrashSpec spec_of(const std::string& scenario) {
  const Loaded<Scenario> loaded = load_scenario("scenarios/storage/" + scenario + ".yaml");
  FD_CHECK(loaded.value && loaded.value->crash, "{} has no crash section", scenario);
  return *loaded.value->crash;
}

inline std::vector<CrashCase> recorded(const ExploreSubject& subject, const CrashSpec& spec) {
  auto cases = cases_of(subject, spec, {}, {});
  FD_CHECK(static_cast<bool>(cases), "{}", describe(cases.error()));
  return std::move(cases->cases);
}

// Of the one trace that a scenario without kills has.
inline std::unique_ptr<crash::CrashSpace> space_of(const CrashCase& one,
                                                   crash::ProfileKind profile = crash::ProfileKind::posix) {
  auto space = crash::CrashSpace::build(one.trace,
                                        {.profile = {.kind = profile, .atomic_rename = false}, .certain = one.certain});
  FD_CHECK(static_cast<bool>(space), "{}", describe(space.error()));
  return *std::move(space);
}

inline CrashCheckResult checked(const ExploreSubject& subject, const CrashSpec& spec, CrashCheckOptions options = {}) {
  auto result = crashcheck(subject, spec, recorded(subject, spec), options);
  FD_CHECK(static_cast<bool>(result), "{}", describe(result.error()));
  return *std::move(result);
}

}  // namespace firedrill
