#include "harness/preflight/rank.h"

#include <fmt/format.h>
#include <signal.h>

#include <exception>
#include <map>

#include "engine/base/check.h"
#include "harness/preflight/probes.h"

namespace firedrill::preflight {
namespace {

constexpr std::string_view mark = "preflight";

const std::map<std::string, Json (*)(const Probe&), std::less<>>& probes() {
  static const std::map<std::string, Json (*)(const Probe&), std::less<>> all = {
      {"exchange", probe_exchange},   {"look", probe_look},       {"machine", probe_machine},
      {"removal", probe_removal},     {"restore", probe_restore}, {"storage", probe_storage},
      {"straggler", probe_straggler},
  };
  return all;
}

}  // namespace

bool is_probe(const RankStart& start) { return start.payload.starts_with(mark); }

int run_probe_rank(RankStart start, const ProbeSeams& seams) {
  ::signal(SIGPIPE, SIG_IGN);
  RankLine line(std::move(start.channel));
  try {
    const Json work = Json::parse(start.payload.substr(mark.size()));
    const auto probe = probes().find(work.at("probe").get<std::string>());
    FD_CHECK(probe != probes().end(), "no probe {}", work.at("probe").dump());
    line.doing("starting");
    if (seams.start) seams.start(start.rank);
    line.done(probe->second(
        {.line = line, .work = work, .seams = seams, .rank = start.rank, .ranks = work.at("ranks").get<int>()}));
    return 0;
  } catch (const ProbeFailed& failure) {
    line.failed(failure.failure());
    return 1;
  } catch (const std::exception& error) {
    line.broken(error.what());
    return 1;
  }
}

}  // namespace firedrill::preflight
