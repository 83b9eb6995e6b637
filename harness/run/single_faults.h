// Single faults: one random fault of a rank, its input, its computations or its communication in a run, and runs in
// which nothing is wrong. What must be true of each: a fault is harmless, or it is noticed, the right rank (or both
// ends of a link) and the right operation are named, and the run gets to the golden all the same; and where nothing is
// wrong nobody is suspected.
//
// Every choice comes from a seed: kind, layout, place (one that a census has counted), options. What notices a damage
// is turned on in its layout. In the sim world. Threads: one, as a Session.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "harness/run/run.h"

namespace firedrill {

enum class SingleOutcome : std::uint8_t {
  harmless,    // the golden in the first attempt
  attributed,  // noticed, and the right ones named for the right operation; then the golden
  detected,    // noticed only: fewer than three replicas cannot tell which of them is wrong; then the golden
  // Findings:
  silently_wrong,  // something else than the golden was reached, or saved
  left_waiting,    // the failure or a survivor of it was not dealt with in time, or the run came to no end
  misattributed,   // others were named, or another operation, or nobody
  false_alarm,     // an attempt ended that had no reason to
  failed,          // something else: a property, a check of our own, a fault that never fired
};
inline constexpr int single_outcome_count = 8;
std::string_view to_string(SingleOutcome outcome);
inline bool is_finding(SingleOutcome outcome) { return outcome > SingleOutcome::detected; }

struct SingleResult {
  SingleOutcome outcome = SingleOutcome::failed;
  std::string why;  // of a finding
};

// The kinds that are drawn: all of the families rank, input, compute and collective.
const std::vector<FaultKind>& single_fault_kinds();

class SingleFaults {
 public:
  // Of the shipped jobs below `jobs`. `session` must outlive it.
  static Result<SingleFaults> make(Session& session, const std::filesystem::path& jobs = "scenarios/jobs");

  // A plan with one fault.
  Result<Plan> draw(std::uint64_t seed);
  // A plan in which messages are late and one rank is slow, all within their bounds.
  Result<Plan> draw_undisturbed(std::uint64_t seed);
  // Runs either of them.
  Result<SingleResult> run(const Plan& plan);

 private:
  explicit SingleFaults(Session& session) : session_(session) {}
  void add_ground(const Job& job, const Layout& layout);
  Result<const Census*> census_of(std::size_t ground, const Layout& layout);

  Session& session_;
  std::vector<Plan> grounds_;  // a job in a layout each, undisturbed
  std::map<std::string, Census> censuses_;
};

// What a trial of the plan, with this history, was.
SingleResult judge_single_fault(const Trial& trial, const History& history, const Plan& plan);
SingleResult judge_undisturbed(const Trial& trial, const History& history, const Plan& plan);

}  // namespace firedrill
