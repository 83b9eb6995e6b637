// The judge of storage, and the check.
#include "harness/preflight/storage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/job/memory.h"
#include "engine/job/planner.h"
#include "engine/job/tensors.h"
#include "engine/os/wall_clock.h"
#include "harness/preflight/check.h"

namespace firedrill::preflight {
namespace {

using Ranks = std::vector<StorageOfRank>;

constexpr double sync_median_max = 200;  // ms; a save waits for several, one behind the other
constexpr double sync_note = 50;         // ms
constexpr double sight_note = 100;       // ms
constexpr double save_share_note = 0.1;  // of the interval between two checkpoints
constexpr std::int64_t slack = 1 << 20;  // manifests, marks, the catalog
constexpr std::chrono::seconds deadline_quick{20};
constexpr std::chrono::seconds deadline_long{60};
constexpr std::chrono::seconds deadline_of_removal{5};

std::string bytes_text(std::int64_t bytes) { return rounded_bytes(static_cast<double>(bytes)); }
std::string speed_text(double bandwidth) { return rounded_bytes(bandwidth) + "/s"; }

// Each step that failed once, with the ranks that it failed on.
void judge_troubles(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  std::set<std::string> said;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const StorageTrouble& trouble : ranks[i].troubles) {
      if (!said.insert(trouble.step).second) continue;
      findings.push_back({Standing::no_go, trouble.error, fmt::format("{} works", trouble.step),
                          fmt::format("{}, rank {}", needs.where, i),
                          "make the directory writable, free space on it, or give a file system that can do this"});
    }
  }
}

void judge_exclusive(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  const bool tried = std::ranges::all_of(ranks, [](const StorageOfRank& rank) { return rank.races > 0; });
  if (!tried) return;
  int doubled = 0;
  int lost = 0;
  for (int race = 0; race < ranks.front().races; ++race) {
    const auto winners = std::ranges::count_if(
        ranks, [race](const StorageOfRank& rank) { return std::ranges::find(rank.won, race) != rank.won.end(); });
    doubled += winners > 1 ? 1 : 0;
    lost += winners == 0 ? 1 : 0;
  }
  if (doubled + lost == 0) return;
  findings.push_back({Standing::no_go,
                      fmt::format("of {} names that {} ranks made at once {} were given to several and {} to none",
                                  ranks.front().races, ranks.size(), doubled, lost),
                      "each to exactly one (exclusive create)", needs.where,
                      "a file system with O_EXCL (NFS: version 3 or newer), or another one for the checkpoints"});
}

void judge_rename(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const StorageOfRank& rank = ranks[i];
    if (rank.missing + rank.mixed + rank.backwards == 0) continue;
    findings.push_back({Standing::no_go,
                        fmt::format("in {} reads under {} renames the file was missing {} times, a mixture or cut {} "
                                    "times, and older than before {} times",
                                    rank.reads, ranks.front().renames, rank.missing, rank.mixed, rank.backwards),
                        "the old or the new at every moment (atomic rename)",
                        fmt::format("{}, reader on rank {}", needs.where, i),
                        "no object store behind a file interface, no overlay: a file system with an atomic rename"});
  }
}

void judge_syncs(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  const auto judge = [&](const std::vector<double>& times, std::string_view what) {
    if (times.empty()) return;
    const double median = percentile(times, 0.5);
    if (median < sync_note) return;
    const bool bad = median > sync_median_max;
    findings.push_back({bad ? Standing::no_go : Standing::note,
                        fmt::format("{} takes {:.0f} ms in the median of {}, {:.0f} ms at the most", what, median,
                                    times.size(), percentile(times, 1)),
                        fmt::format("at most {:.0f} ms: a save waits for {} syncs one behind the other",
                                    sync_median_max, syncs_of_a_save),
                        needs.where, "storage with a write cache that survives a power loss, or fewer other writers"});
  };
  judge(ranks.front().file_syncs, "a sync of a file");
  judge(ranks.front().directory_syncs, "a sync of a directory");
}

void judge_sight(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const auto judge = [&](const std::vector<double>& times, std::string_view what) {
      const bool never = std::ranges::any_of(times, [](double time) { return time < 0; });
      const double worst = times.empty() ? 0 : percentile(times, 1);
      if (!never && worst < sight_note) return;
      findings.push_back(
          {never ? Standing::no_go : Standing::note,
           never ? fmt::format("{} that rank 0 had made and synced was not seen for 3 s", what)
                 : fmt::format("{} that rank 0 had made and synced was seen {:.0f} ms later", what, worst),
           "at once: ranks agree on a checkpoint by what each of them sees", fmt::format("{}, rank {}", needs.where, i),
           "turn off attribute and name caches (NFS: noac, lookupcache=none), or another file system"});
    };
    judge(ranks[i].seen_by_stat, "a file (stat)");
    judge(ranks[i].seen_by_list, "a name (list)");
    judge(ranks[i].seen_grown, "a new size (stat)");
  }
}

void judge_space(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  const StorageOfRank& first = ranks.front();
  const int copies = needs.kept + 1;
  const std::int64_t bytes = copies * (needs.checkpoint + slack);
  if (first.free_bytes >= 0 && first.free_bytes < bytes) {
    findings.push_back({Standing::no_go, fmt::format("{} free", bytes_text(first.free_bytes)),
                        fmt::format("{}: {} checkpoints of {} ({} kept, one in the making)", bytes_text(bytes), copies,
                                    bytes_text(needs.checkpoint + slack), needs.kept),
                        needs.where, "free space, raise the quota, or lower checkpoint.keep_validated"});
  }
  const std::int64_t files = copies * needs.files;
  if (first.free_inodes >= 0 && first.free_inodes < files) {
    findings.push_back({Standing::no_go, fmt::format("{} free inodes", first.free_inodes),
                        fmt::format("{}: {} checkpoints of {} files", files, copies, needs.files), needs.where,
                        "remove small files, or a file system with more inodes"});
  }
}

void judge_speed(const Ranks& ranks, const StorageNeeds& needs, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].read_wrong == 0) continue;
    findings.push_back({Standing::no_go, "a file that was read back with caches dropped holds other bytes than written",
                        "the bytes that were written", fmt::format("{}, read by rank {}", needs.where, i),
                        "do not use this storage"});
  }
  if (!needs.interval_given) return;
  const StorageSpeed speed = speed_of(ranks, needs);
  if (speed.save_seconds < save_share_note * needs.interval_seconds) return;
  findings.push_back(
      {speed.save_seconds > needs.interval_seconds ? Standing::no_go : Standing::note,
       fmt::format("a save of {} is expected to take {:.3g} s", bytes_text(needs.checkpoint), speed.save_seconds),
       fmt::format("less than {:.0f} % of the {:.3g} s between two checkpoints", 100 * save_share_note,
                   needs.interval_seconds),
       needs.where, "checkpoint.mode async, a longer interval, or faster storage"});
}

StorageNeeds needs_of(const Options& options) {
  const Job& job = options.job;
  const ElementBytes bytes = element_bytes(job);
  StorageNeeds needs{.where = options.directory.string(),
                     .ranks = options.layout.world_size(),
                     .checkpoint = parameter_count(job) * (bytes.parameter + bytes.master + bytes.moments),
                     .kept = job.checkpoint.keep_validated,
                     .interval_given = options.interval.has_value()};
  needs.files = std::int64_t{needs.ranks} * 3 + 8;
  const int every = job.checkpoint.every > 0 ? job.checkpoint.every : job.steps;
  needs.interval_seconds = options.interval ? std::chrono::duration<double>(*options.interval).count()
                                            : every * estimate_step(job, options.layout).seconds();
  return needs;
}

std::int64_t bytes_of(Level level) {
  switch (level) {
    case Level::quick: return 4 << 20;
    case Level::standard: return 32 << 20;
    case Level::full: return 128 << 20;
  }
  return 0;
}

std::string headline_of(const Ranks& ranks, const StorageNeeds& needs) {
  const StorageSpeed speed = speed_of(ranks, needs);
  return fmt::format(
      "sync {:.2g}/{:.2g} ms (median, max); all ranks write {}, read {}; {} free; save {:.2g} s, restore {:.2g} s{}",
      speed.sync_median, percentile(ranks.front().file_syncs, 1), speed_text(speed.write_bandwidth),
      speed_text(speed.read_bandwidth), bytes_text(ranks.front().free_bytes), speed.save_seconds, speed.restore_seconds,
      needs.interval_given
          ? fmt::format(" every {:.3g} s", needs.interval_seconds)
          : fmt::format(" (every {:.2g} s by the cluster table; --interval to judge it)", needs.interval_seconds));
}

// A name that no other run has, also not one that was killed here before: in a container process numbers come again.
std::string scratch_name() { return fmt::format("firedrill-preflight-{}-{:x}", ::getpid(), wall_clock_now().count()); }

// By one more process that can be thrown away, whatever became of those that made it, and also when all is to stop.
// Returns what is in its way.
std::optional<Finding> remove_scratch(Bench& bench, const std::string& scratch) {
  const std::filesystem::path path = bench.options.directory / scratch;
  const Result<std::vector<RankAnswer>> answers =
      bench.team.ask({{"probe", "removal"}, {"path", path.string()}}, 1, deadline_of_removal);
  const std::string trouble = answers ? answers->front().trouble : answers.error().message;
  if (trouble.empty()) return std::nullopt;
  return Finding{Standing::note, fmt::format("what the probe made may have been left behind: {}", trouble),
                 "nothing left behind", path.string(), "remove it when the storage answers again"};
}

std::chrono::nanoseconds deadline_of(const Options& options) {
  if (options.storage_deadline.count() > 0) return options.storage_deadline;
  return options.level == Level::quick ? deadline_quick : deadline_long;
}

void add_numbers(const Ranks& ranks, const StorageNeeds& needs, Json& measured) {
  const StorageSpeed speed = speed_of(ranks, needs);
  measured["write_bandwidth"] = speed.write_bandwidth;
  measured["read_bandwidth"] = speed.read_bandwidth;
  measured["save_seconds"] = speed.save_seconds;
  measured["restore_seconds"] = speed.restore_seconds;
  measured["checkpoint_bytes"] = needs.checkpoint;
  measured["sync_percentiles"] = {{"p50", percentile(ranks.front().file_syncs, 0.5)},
                                  {"p95", percentile(ranks.front().file_syncs, 0.95)},
                                  {"p99", percentile(ranks.front().file_syncs, 0.99)},
                                  {"max", percentile(ranks.front().file_syncs, 1)}};
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(share * last + 0.5)];
}

StorageSpeed speed_of(const Ranks& ranks, const StorageNeeds& needs) {
  StorageSpeed speed;
  double slowest_write = 0;
  double slowest_read = 0;
  double moved = 0;
  for (const StorageOfRank& rank : ranks) {
    moved += static_cast<double>(rank.moved);
    slowest_write = std::max(slowest_write, rank.write_seconds);
    slowest_read = std::max(slowest_read, rank.read_seconds);
  }
  if (slowest_write > 0) speed.write_bandwidth = moved / slowest_write;
  if (slowest_read > 0) speed.read_bandwidth = moved / slowest_read;
  speed.sync_median = percentile(ranks.front().file_syncs, 0.5);
  const auto bytes = static_cast<double>(needs.checkpoint);
  const double read = speed.read_bandwidth > 0 ? bytes / speed.read_bandwidth : 0;
  const double write = speed.write_bandwidth > 0 ? bytes / speed.write_bandwidth : 0;
  speed.save_seconds = write + read + syncs_of_a_save * speed.sync_median / 1e3;  // what is written is read back
  speed.restore_seconds = 2 * read;  // its digests are verified before it is read for the state
  return speed;
}

std::vector<Finding> judge_storage(const Ranks& ranks, const StorageNeeds& needs) {
  std::vector<Finding> findings;
  judge_troubles(ranks, needs, findings);
  judge_exclusive(ranks, needs, findings);
  judge_rename(ranks, needs, findings);
  judge_syncs(ranks, needs, findings);
  judge_sight(ranks, needs, findings);
  judge_space(ranks, needs, findings);
  judge_speed(ranks, needs, findings);
  return findings;
}

CheckResult check_storage(Bench& bench) {
  bench.storage_answers = false;  // whatever an earlier look found
  CheckResult result;
  const StorageNeeds needs = needs_of(bench.options);
  const std::string scratch = scratch_name();
  const std::chrono::nanoseconds deadline = deadline_of(bench.options);
  const Json work = {{"probe", "storage"},
                     {"directory", bench.options.directory.string()},
                     {"scratch", scratch},
                     {"bytes", bytes_of(bench.options.level)},
                     {"alone", bench.options.level != Level::quick}};
  // A reader and a writer, whatever the job has.
  const Result<std::vector<RankAnswer>> answers = bench.ask(work, std::max(2, needs.ranks), deadline);
  const std::optional<Finding> left = remove_scratch(bench, scratch);
  if (!answers) {
    result.findings.push_back(
        {Standing::unknown, answers.error().message, "processes that try the storage", "here", answers.error().hint});
    return result;
  }
  result.findings = troubles_of(*answers, needs.where, deadline,
                                "look at the mount (is its server there?), or give another directory");
  if (result.findings.empty()) {
    Ranks ranks;
    for (const RankAnswer& answer : *answers) {
      ranks.push_back(answer.measured.get<StorageOfRank>());
      result.measured["ranks"].push_back(answer.measured);
    }
    result.findings = judge_storage(ranks, needs);
    bench.storage_answers = result.standing() < Standing::unknown;
    add_numbers(ranks, needs, result.measured);
    result.headline = headline_of(ranks, needs);
  }
  // Of what does not work the numbers say little.
  if (!bench.storage_answers) result.headline = result.findings.front().measured;
  if (left) result.findings.push_back(*left);
  return result;
}

}  // namespace firedrill::preflight
