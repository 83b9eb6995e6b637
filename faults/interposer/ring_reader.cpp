#include "faults/interposer/ring_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace firedrill::interposer {
namespace {

Result<std::string> bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return Error{.code = errno == ENOENT ? Code::not_found : Code::io_error,
                 .message = fmt::format("cannot read {}: {}", file.string(), std::strerror(errno))};
  }
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return Error{.code = Code::io_error, .message = fmt::format("cannot read {}", file.string())};
  return bytes;
}

// The bytes were written by another process: a view of them, whose atomics only this process sees.
template <class T>
const T& at(const std::string& bytes, std::uint64_t offset) {
  return *reinterpret_cast<const T*>(bytes.data() + offset);
}

std::string text_of(const char* text, std::size_t size) { return {text, ::strnlen(text, size)}; }

// A name of the enumeration, or what the reader cannot know, from a byte that may be anything.
template <class T>
T known(T value, int count, T otherwise) {
  const int number = static_cast<int>(value);
  return number >= 0 && number < count ? value : otherwise;
}

Status check_header(const std::string& bytes, const std::filesystem::path& file) {
  const auto refuse = [&](std::string_view why) {
    return Error{.code = Code::corrupted,
                 .message = fmt::format("{}: {}", file.string(), why),
                 .hint = "give a .ring file that libfiredrill_nccl.so of the same version has written"};
  };
  if (bytes.size() < entries_offset || at<RingHeader>(bytes, 0).magic != ring_magic) return refuse("this is no ring");
  const auto& header = at<RingHeader>(bytes, 0);
  if (header.version != ring_version || header.entry_size != sizeof(RingEntry)) {
    return refuse(fmt::format("a ring of version {}, this reads version {}", header.version, ring_version));
  }
  if (header.capacity == 0 || (header.capacity & (header.capacity - 1)) != 0 ||
      bytes.size() != ring_file_size(header.capacity) || header.faults > fault_slot_count) {
    return refuse("the sizes in its header do not fit the file");
  }
  return {};
}

void read_comms(const std::string& bytes, RingDump& dump) {
  for (int i = 0; i < comm_slot_count; ++i) {
    const auto& slot = at<CommSlot>(bytes, comms_offset + static_cast<std::uint64_t>(i) * sizeof(CommSlot));
    if (slot.handle.load() == 0) continue;
    dump.comms.push_back({.id = slot.id,
                          .parent = slot.parent,
                          .rank = slot.rank.load(),
                          .size = slot.size.load(),
                          .global_rank = slot.global_rank,
                          .number = slot.number,
                          .made_by = known(slot.made_by, op_count, Op::none),
                          .gone = slot.handle.load() == 1,
                          .calls = slot.calls.load(),
                          .async_error = slot.async_error.load()});
  }
  std::sort(dump.comms.begin(), dump.comms.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
}

CallRecord call_from(const RingEntry& entry) {
  return {.number = entry.stamp.load() - 1,
          .time = entry.time,
          .comm = entry.comm,
          .call = entry.call,
          .sequence = entry.sequence,
          .count = entry.count,
          .asked = entry.asked,
          .stream = entry.stream,
          .group = entry.group,
          .thread = entry.thread,
          .rank = entry.rank,
          .size = entry.size,
          .dtype = entry.dtype,
          .redop = entry.redop,
          .peer = entry.peer,
          .op = known(entry.op, op_count, Op::none),
          .event = known(entry.event, fault_event_count, FaultEvent::none),
          .reason = known(entry.reason, reason_count, Reason::none),
          .fault = entry.fault,
          .state = known(entry.state.load(), state_count, State::entered),
          .result = entry.result.load(),
          .duration = entry.duration.load()};
}

// Entries whose stamp is the same in two readings were not written while the first was made.
void read_calls(const std::string& first, const std::string& second, RingDump& dump) {
  const std::uint64_t capacity = at<RingHeader>(first, 0).capacity;
  const std::uint64_t used = std::min(dump.begun, capacity);
  for (std::uint64_t i = 0; i < used; ++i) {
    const std::uint64_t offset = entries_offset + i * sizeof(RingEntry);
    const auto& entry = at<RingEntry>(first, offset);
    const std::uint64_t stamp = entry.stamp.load();
    if (stamp == 0 || (stamp - 1) % capacity != i || stamp != at<RingEntry>(second, offset).stamp.load()) {
      ++dump.incomplete;
    } else {
      dump.calls.push_back(call_from(entry));
    }
  }
  std::sort(dump.calls.begin(), dump.calls.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
}

void append_operands(std::string& text, const CallRecord& call) {
  text += fmt::format(" count {}", call.count);
  if (call.asked != call.count) text += fmt::format(" (asked {})", call.asked);
  if (!type_name(call.dtype).empty()) text += fmt::format(" {}", type_name(call.dtype));
  if (!reduction_name(call.redop).empty()) text += fmt::format(" {}", reduction_name(call.redop));
  if (call.peer != unknown) text += fmt::format(" {} {}", is_point_to_point(call.op) ? "peer" : "root", call.peer);
  text += fmt::format(" stream {:x}", call.stream);
  if (call.group != 0) text += fmt::format(" group {}", call.group);
}

}  // namespace

Result<RingDump> read_ring(const std::filesystem::path& file) {
  FD_TRY(const std::string first, bytes_of(file));
  FD_TRY_VOID(check_header(first, file));
  FD_TRY(const std::string second, bytes_of(file));
  FD_TRY_VOID(check_header(second, file));
  const auto& header = at<RingHeader>(first, 0);
  RingDump dump{.file = file,
                .pid = header.pid,
                .process_rank = header.process_rank,
                .attempt = header.attempt,
                .plan_digest = header.plan_digest,
                .started = header.started,
                .begun = header.head.load(),
                .ended = header.ended.load() != 0,
                .host = text_of(header.host, sizeof header.host),
                .program = text_of(header.program, sizeof header.program),
                .plan = text_of(header.plan, sizeof header.plan)};
  for (std::uint32_t i = 0; i < header.faults; ++i) {
    const auto& slot = at<FaultSlot>(first, faults_offset + i * sizeof(FaultSlot));
    dump.faults.push_back({.kind = known(slot.kind, kind_count, Kind::delay),
                           .rank = slot.rank,
                           .matched = slot.matched.load(),
                           .fired = slot.fired.load(),
                           .fired_before = slot.fired_before,
                           .last_event = known(slot.last_event.load(), fault_event_count, FaultEvent::none),
                           .reason = known(slot.reason.load(), reason_count, Reason::none)});
  }
  read_comms(first, dump);
  read_calls(first, second, dump);
  return dump;
}

Result<std::vector<RingDump>> read_rings(const std::filesystem::path& folder) {
  std::error_code failure;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    if (it->path().extension() == ".ring") files.push_back(it->path());
  }
  if (failure) {
    return Error{.code = failure == std::errc::no_such_file_or_directory ? Code::not_found : Code::io_error,
                 .message = fmt::format("cannot list {}: {}", folder.string(), failure.message())};
  }
  std::sort(files.begin(), files.end());
  std::vector<RingDump> rings;
  for (const std::filesystem::path& file : files) {
    FD_TRY(RingDump ring, read_ring(file));
    rings.push_back(std::move(ring));
  }
  return rings;
}

std::string to_text(const CallRecord& call) {
  std::string text = fmt::format("{:>6}", call.number);
  if (call.op == Op::fault) {
    text += fmt::format(" fault {} {}", call.fault, to_string(call.event));
    if (call.reason != Reason::none) text += fmt::format(": {}", to_string(call.reason));
    if (call.call != 0) text += fmt::format(" (comm {:016x} call {})", call.comm, call.call);
    return text;
  }
  text += fmt::format(" {}", to_string(call.op));
  if (call.comm != 0) text += fmt::format(" comm {:016x} rank {}/{}", call.comm, call.rank, call.size);
  if (is_collective(call.op) || is_point_to_point(call.op)) {
    text += fmt::format(" call {} seq {}", call.call, call.sequence);
    append_operands(text, call);
  } else if (call.group != 0) {
    text += fmt::format(" group {}", call.group);
  }
  text += fmt::format(" thread {} {}", call.thread, to_string(call.state));
  if (call.state == State::returned) text += fmt::format(" {} after {} ns", result_name(call.result), call.duration);
  if (call.fault != unknown) text += fmt::format(" [fault {}]", call.fault);
  return text;
}

std::string to_text(const RingDump& ring, std::size_t last) {
  std::string text =
      fmt::format("{}\n  process {} on {}, attempt {}, {}: {}\n", ring.file.string(), ring.pid, ring.host, ring.attempt,
                  ring.ended ? "ended by itself" : "running or killed", ring.program);
  for (const CommRecord& comm : ring.comms) {
    text += fmt::format("  communicator {} {:016x} rank {}/{} (global {}) by {}, {} calls{}{}\n", comm.number, comm.id,
                        comm.rank, comm.size, comm.global_rank, to_string(comm.made_by), comm.calls,
                        comm.parent != 0 ? fmt::format(", from {:016x}", comm.parent) : "", comm.gone ? ", gone" : "");
  }
  for (std::size_t i = 0; i < ring.faults.size(); ++i) {
    const FaultRecord& fault = ring.faults[i];
    text += fmt::format("  fault {} {} rank {}: {} calls matched, fired {}{}\n", i, to_string(fault.kind), fault.rank,
                        fault.matched, fault.fired,
                        fault.reason != Reason::none ? fmt::format(", {}", to_string(fault.reason)) : "");
  }
  const std::size_t skipped = ring.calls.size() > last ? ring.calls.size() - last : 0;
  text += fmt::format("  {} entries, the last {}{}\n", ring.begun, ring.calls.size() - skipped,
                      ring.incomplete != 0 ? fmt::format(", {} incomplete", ring.incomplete) : "");
  for (std::size_t i = skipped; i < ring.calls.size(); ++i) text += to_text(ring.calls[i]) + "\n";
  return text;
}

FaultOutcome outcome_of(const NcclPlan& plan, std::size_t fault, const std::vector<RingDump>& rings) {
  std::string why =
      "no ring was written under this plan: the program was not interposed, or its calls of NCCL are out of reach "
      "(linked statically, or found by dlsym in a handle)";
  for (const RingDump& ring : rings) {
    if (ring.plan_digest != plan.digest || fault >= ring.faults.size()) continue;
    const FaultRecord& record = ring.faults[fault];
    if (record.fired != 0) return {true, fmt::format("fired in process {}", ring.pid)};
    const bool here = std::any_of(ring.comms.begin(), ring.comms.end(),
                                  [&](const CommRecord& comm) { return comm.global_rank == record.rank; });
    if (here && record.reason != Reason::none) {
      why = fmt::format("process {}: {}", ring.pid, to_string(record.reason));
    } else if (here) {
      why = fmt::format("{} matching calls of rank {} in process {}", record.matched, record.rank, ring.pid);
    } else if (why.starts_with("no ring")) {
      why = fmt::format("no process had rank {}", record.rank);
    }
  }
  return {false, "not fired: " + why};
}

}  // namespace firedrill::interposer
