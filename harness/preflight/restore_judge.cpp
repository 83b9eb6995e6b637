// The judge of a restore.
#include <fmt/format.h>

#include <algorithm>

#include "harness/preflight/restore.h"

namespace firedrill::preflight {
namespace {

constexpr std::size_t problems_shown = 5;

void judge_audit(const Json& audited, const std::string& where, std::vector<Finding>& findings) {
  const auto problems = audited.at("problems").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < std::min(problems.size(), problems_shown); ++i) {
    findings.push_back({Standing::no_go, problems[i], "every byte as its digest says", where,
                        "do not resume from it; an older checkpoint, or another copy"});
  }
  if (audited.at("damaged").get<bool>() && problems.empty()) {
    findings.push_back({Standing::no_go, "damage", "no damage", where, "firedrill audit DIR names it"});
  }
  if (!audited.contains("newest")) {
    findings.push_back({Standing::no_go, "no checkpoint", "one that stands", where,
                        "give the root of the checkpoints, in which `shards` lies"});
  }
}

// False: it could not restore.
bool judge_rank(const Json& said, const std::string& newest, const std::string& where, std::vector<Finding>& findings) {
  if (said.contains("error")) {
    findings.push_back({Standing::no_go, said["error"].get<std::string>(), "a restore with this job in this layout",
                        where, "the job file that the checkpoint was made with, or an undamaged checkpoint"});
    return false;
  }
  if (const std::string found = said.value("found", "nothing"); found != newest) {
    findings.push_back({Standing::no_go, fmt::format("the engine would resume from {}", found),
                        fmt::format("{}, the newest that stands by the audit", newest), where,
                        "see which of them are whole: firedrill audit DIR"});
  }
  for (const Json& difference : said.value("different", Json::array())) {
    findings.push_back(
        {Standing::no_go, difference.get<std::string>(), "what its manifest says", where, "do not resume from it"});
  }
  return true;
}

}  // namespace

void judge_restore(const std::vector<Json>& said, const std::string& where, CheckResult& result) {
  const Json& audited = said.front().at("audit");
  judge_audit(audited, where, result.findings);
  int tensors = 0;
  int runs = 0;
  if (audited.contains("newest")) {
    bool restored = true;
    for (std::size_t rank = 0; rank < said.size() && restored; ++rank) {  // the others say the same, or gave up for it
      const std::string here = fmt::format("{}, rank {}", where, rank);
      restored = judge_rank(said[rank], audited["newest"].get<std::string>(), here, result.findings);
      tensors += said[rank].value("tensors", 0);
      runs += said[rank].value("runs", 0);
    }
    if (restored && tensors + runs == 0) {
      result.findings.push_back({Standing::no_go, "nothing of the checkpoint was compared", "every tensor of it", where,
                                 "the job file that the checkpoint was made with"});
    }
  }
  result.headline =
      fmt::format("{} restored by {} ranks: {} tensors equal to the manifest, {} parts verified by restore",
                  said.front().value("found", "nothing"), said.size(), tensors, runs);
}

}  // namespace firedrill::preflight
