#include "faults/kinds.h"

#include <initializer_list>
#include <vector>

#include "engine/seam/collective_op.h"

namespace firedrill {
namespace {

constexpr std::uint32_t about(std::initializer_list<FileOp> ops) {
  std::uint32_t mask = 0;
  for (const FileOp op : ops) mask |= std::uint32_t{1} << static_cast<int>(op);
  return mask;
}
constexpr std::uint32_t any_file_op = (std::uint32_t{1} << file_op_count) - 1;
constexpr std::uint32_t writing = about({FileOp::write});
constexpr std::uint32_t syncing = about({FileOp::sync, FileOp::sync_directory});

struct Kind {
  FaultKindInfo info;
  TakeEffect take_effect;
};

FaultKindInfo deadly(FaultKind kind, std::string_view name, std::string_view summary, bool in_process_world) {
  return {.kind = kind, .name = name, .summary = summary, .in_process_world = in_process_world, .harm = Harm::death};
}

FaultKindInfo of_ranks(FaultKind kind, std::string_view name, std::string_view summary, Harm harm) {
  return {.kind = kind, .name = name, .summary = summary, .in_process_world = true, .harm = harm};
}

FaultKindInfo failing(FaultKind kind, std::string_view name, std::string_view summary, std::uint32_t file_ops) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = true,
          .harm = Harm::error,
          .file_ops = file_ops};
}

FaultKindInfo damaging_write(FaultKind kind, std::string_view name, std::string_view summary, bool in_process_world) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = in_process_world,
          .harm = Harm::write_damaged,
          .file_ops = writing,
          .has_after = false};
}

FaultKindInfo misleading(FaultKind kind, std::string_view name, std::string_view summary, std::uint32_t file_ops) {
  return {.kind = kind, .name = name, .summary = summary, .file_ops = file_ops, .has_after = false};
}

FaultKindInfo damaging_rest(FaultKind kind, std::string_view name, std::string_view summary, std::uint32_t file_ops,
                            bool has_after) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = true,
          .harm = Harm::rest_damaged,
          .file_ops = file_ops,
          .has_after = has_after,
          .checkpoints_only = true};
}

FaultKindInfo failed_sync() {
  FaultKindInfo info = failing(FaultKind::failed_sync, "failed_sync",
                               "a sync fails (EIO), and what it was to make durable never becomes durable", syncing);
  info.has_after = false;
  return info;
}

FaultKindInfo lying_sync() {
  FaultKindInfo info =
      misleading(FaultKind::lying_sync, "lying_sync", "a sync reports success, and nothing is durable", syncing);
  info.harm = Harm::sync_undone;
  return info;
}

constexpr std::uint32_t among(std::initializer_list<CollectiveOp> ops) {
  std::uint32_t mask = 0;
  for (const CollectiveOp op : ops) mask |= std::uint32_t{1} << static_cast<int>(op);
  return mask;
}
constexpr std::uint32_t reducing = among({CollectiveOp::all_reduce, CollectiveOp::reduce_scatter});
constexpr std::uint32_t any_but_recv = (std::uint32_t{1} << static_cast<int>(CollectiveOp::recv)) - 1;
// Calls behind which a rank does not need a result at once.
constexpr std::uint32_t unawaited = among({CollectiveOp::send, CollectiveOp::barrier}) | reducing;

FaultKindInfo of_calls(FaultKind kind, std::string_view name, std::string_view summary, std::uint32_t ops) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = true,
          .harm = Harm::call,
          .has_after = false,
          .seams = bit_of(SeamOp::collective),
          .collective_ops = ops};
}

FaultKindInfo of_messages(FaultKind kind, std::string_view name, std::string_view summary, bool in_process_world) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = in_process_world,
          .harm = Harm::message,
          .has_after = false,
          .seams = bit_of(SeamOp::send)};
}

FaultKindInfo of_links(FaultKind kind, std::string_view name, std::string_view summary) {
  return {.kind = kind, .name = name, .summary = summary, .harm = Harm::message};
}

FaultKindInfo of_input(FaultKind kind, std::string_view name, std::string_view summary, Harm harm) {
  return {.kind = kind,
          .name = name,
          .summary = summary,
          .in_process_world = true,
          .harm = harm,
          .has_after = false,
          .changes_result = harm == Harm::computation,
          .seams = bit_of(SeamOp::input)};
}

FaultKindInfo of_compute(FaultKind kind, std::string_view name, std::string_view summary, Harm harm) {
  FaultKindInfo info = of_input(kind, name, summary, harm);
  info.seams = bit_of(SeamOp::compute);
  return info;
}

FaultKindInfo corrupt_payload() {
  FaultKindInfo info =
      of_input(FaultKind::corrupt_payload, "corrupt_payload",
               "a message arrives with another content (`damage`: one bit, a NaN, another shard's)", Harm::computation);
  info.seams = bit_of(SeamOp::send);
  info.changes_result = false;
  return info;
}

std::vector<Kind> kinds_of_ranks_and_storage() {
  return {
      {deadly(FaultKind::kill, "kill", "a rank dies at once (SIGKILL)", true), take_kill},
      {deadly(FaultKind::kill_node, "kill_node",
              "all ranks of the rank's node die at once; what the node had not synced may be lost", false),
       take_kill_node},
      {failing(FaultKind::io_error, "io_error", "a file operation fails (EIO)", any_file_op), take_io_error},
      {failing(FaultKind::no_space, "no_space", "a write, create or make_directory finds the storage full (ENOSPC)",
               about({FileOp::write, FileOp::create, FileOp::make_directory})),
       take_no_space},
      {deadly(FaultKind::lose_unsynced_data, "lose_unsynced_data",
              "the rank's node loses its power, and with it all data it had not synced", false),
       take_lose_unsynced_data},
      {deadly(FaultKind::lose_unsynced_names, "lose_unsynced_names",
              "the rank's node loses its power, and with it all names it had not synced", false),
       take_lose_unsynced_names},
      {damaging_write(FaultKind::torn_write, "torn_write",
                      "a third of a write (`lost`) does not land and reads as zeros", false),
       take_torn_write},
      {damaging_write(FaultKind::dropped_write, "dropped_write", "a write is reported as done, and nothing of it lands",
                      false),
       take_dropped_write},
      {damaging_write(FaultKind::short_write, "short_write",
                      "a write is reported as done, and only its first half lands", true),
       take_short_write},
      {damaging_write(FaultKind::misdirected_write, "misdirected_write",
                      "a write lands at another offset, or in another file of the same rank (`lands_in`)", false),
       take_misdirected_write},
      {damaging_write(FaultKind::bit_flip_on_write, "bit_flip_on_write", "a write lands with one bit flipped", true),
       take_bit_flip_on_write},
      {damaging_rest(FaultKind::bit_flip_at_rest, "bit_flip_at_rest",
                     "one bit of a stored shard or manifest has flipped when it is looked at",
                     about({FileOp::open, FileOp::read}), true),
       take_bit_flip_at_rest},
      {failed_sync(), take_failed_sync},
      {lying_sync(), take_lying_sync},
      {{.kind = FaultKind::slow_disk,
        .name = "slow_disk",
        .summary = "a file operation takes longer, by `delay`",
        .in_process_world = true,
        .file_ops = any_file_op},
       take_slow_disk},
      {misleading(FaultKind::stale_listing, "stale_listing", "a rank's listing lacks the newest name",
                  about({FileOp::list})),
       take_stale_listing},
      {misleading(FaultKind::stale_stat, "stale_stat", "a rank is told a file's size of before it was written",
                  about({FileOp::stat})),
       take_stale_stat},
      {misleading(FaultKind::late_visibility, "late_visibility",
                  "a name is not there yet for one rank, for some `looks` or for a `delay`",
                  about({FileOp::open, FileOp::stat, FileOp::list})),
       take_late_visibility},
      {damaging_rest(FaultKind::file_vanishes, "file_vanishes",
                     "a stored shard or manifest goes between its listing and its opening", about({FileOp::open}),
                     false),
       take_file_vanishes},
      {{.kind = FaultKind::clock_skew,
        .name = "clock_skew",
        .summary = "the node's clock, as files show it, is `ahead` or `behind` from then on"},
       take_clock_skew},
  };
}

std::vector<Kind> kinds_of_liveness() {
  return {
      {of_ranks(FaultKind::hang, "hang", "a rank stops and is never heard of again (SIGSTOP)", Harm::silence),
       take_hang},
      {of_ranks(FaultKind::stall, "stall", "the task that makes the call is stuck; its rank's signs of life go on",
                Harm::silence),
       take_stall},
      {of_ranks(FaultKind::slow, "slow", "a rank's calls take longer, each by `delay`", Harm::none), take_slow},
      {of_ranks(FaultKind::preempt, "preempt",
                "a rank is told to leave (SIGTERM), and killed when `cluster.grace` is over", Harm::leave),
       take_preempt},
      {of_ranks(FaultKind::exit, "exit", "a rank's process ends by itself in mid-run, with exit code `code` (also 0)",
                Harm::death),
       take_exit},
  };
}

std::vector<Kind> kinds_of_communication() {
  return {
      {of_calls(FaultKind::reorder_calls, "reorder_calls",
                "two collective calls in a row of one rank change places; if it waits in between, nothing fires",
                unawaited),
       take_reorder_calls},
      {of_calls(FaultKind::skip_call, "skip_call",
                "a rank leaves a collective call out and goes on as if it were alone in the group", any_but_recv),
       take_skip_call},
      {of_calls(FaultKind::duplicate_call, "duplicate_call", "a rank makes a collective call twice", any_but_recv),
       take_duplicate_call},
      {of_calls(FaultKind::wrong_count, "wrong_count", "a rank reduces one element less than its peers", reducing),
       take_wrong_count},
      {of_calls(FaultKind::wrong_dtype, "wrong_dtype", "a rank reduces elements of another type than its peers",
                reducing),
       take_wrong_dtype},
      {of_calls(FaultKind::wrong_root, "wrong_root", "a rank takes another member for the root of a broadcast",
                among({CollectiveOp::broadcast})),
       take_wrong_root},
      {of_calls(FaultKind::wrong_reduce_op, "wrong_reduce_op", "a rank asks for another reduction than its peers",
                reducing),
       take_wrong_reduce_op},
      {of_calls(FaultKind::early_abort, "early_abort", "a rank gives up: its waits end, and its peers see it gone", 0),
       take_early_abort},
      {of_messages(FaultKind::delay_message, "delay_message", "a message leaves later, by `delay`", true),
       take_delay_message},
      {of_messages(FaultKind::drop_message, "drop_message", "a message never arrives", true), take_drop_message},
      {of_messages(FaultKind::duplicate_message, "duplicate_message", "a message arrives twice", true),
       take_duplicate_message},
      {of_messages(FaultKind::late_message, "late_message",
                   "a message does not arrive in its attempt, but in the next one, which must not take it", false),
       take_late_message},
      {of_links(FaultKind::partition, "partition",
                "what crosses the border of the rank's node is lost from then on (`one_way`: what leaves it)"),
       take_partition},
      {of_links(FaultKind::slow_link, "slow_link",
                "messages between the rank and others (`peer`, `group`) take longer, by `delay`"),
       take_slow_link},
      {of_links(FaultKind::flaky_link, "flaky_link",
                "one in `every` messages between the rank and others is lost and sent again, later by `delay`"),
       take_flaky_link},
  };
}

std::vector<Kind> kinds_of_computation() {
  return {
      {of_input(FaultKind::slow_shard, "slow_shard", "rows of the training text come late, by `delay`", Harm::none),
       take_slow_shard},
      {of_input(FaultKind::unreadable_shard, "unreadable_shard", "rows of the training text cannot be read",
                Harm::error),
       take_unreadable_shard},
      {of_input(FaultKind::bad_sample, "bad_sample", "a row of the training text is read as garbage",
                Harm::computation),
       take_bad_sample},
      {of_input(FaultKind::shard_ends_early, "shard_ends_early", "the last row of a micro-batch is missing",
                Harm::computation),
       take_shard_ends_early},
      {of_compute(FaultKind::bit_flip, "bit_flip", "one bit of a computed value of one rank is wrong (`target`)",
                  Harm::computation),
       take_bit_flip},
      {of_compute(FaultKind::nan, "nan", "one number of a computed value of one rank is NaN (`target`)",
                  Harm::computation),
       take_nan},
      {of_compute(FaultKind::exception, "exception", "the code of a step throws on one rank", Harm::error),
       take_exception},
      {corrupt_payload(), take_corrupt_payload},
  };
}

// In the order of FaultKind.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = [] {
    std::vector<Kind> all = kinds_of_ranks_and_storage();
    for (const Kind& kind : kinds_of_liveness()) all.push_back(kind);
    for (const Kind& kind : kinds_of_communication()) all.push_back(kind);
    for (const Kind& kind : kinds_of_computation()) all.push_back(kind);
    return all;
  }();
  return list;
}

}  // namespace

const std::vector<FaultKindInfo>& fault_kinds() {
  static const std::vector<FaultKindInfo> infos = [] {
    std::vector<FaultKindInfo> list;
    for (const Kind& kind : kinds()) list.push_back(kind.info);
    return list;
  }();
  return infos;
}

TakeEffect effect_of(FaultKind kind) { return kinds()[static_cast<std::size_t>(kind)].take_effect; }

}  // namespace firedrill
