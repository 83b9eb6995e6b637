#include "faults/interposer/preload/faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "faults/interposer/preload/communicators.h"
#include "faults/interposer/preload/held.h"
#include "faults/interposer/preload/process.h"

namespace firedrill::interposer {
namespace {

std::string journal_path() { return process().options->folder + "/faults.jsonl"; }

std::string line_begin(FaultEvent event, std::size_t fault) {
  return fmt::format("{{\"event\":\"{}\",\"fault\":{},\"plan\":\"{:016x}\",", to_string(event), fault,
                     process().plan->digest);
}

// How often each fault has fired in earlier processes of this run.
void count_earlier_firings() {
  Process& state = process();
  std::ifstream stream(journal_path());
  std::string line;
  while (std::getline(stream, line)) {
    for (std::size_t i = 0; i < state.plan->faults.size(); ++i) {
      if (line.starts_with(line_begin(FaultEvent::fired, i))) ++state.ring.faults[i].fired_before;
    }
  }
}

bool used_up(const NcclFault& fault, const FaultSlot& slot) {
  return fault.times != 0 && slot.fired_before + slot.fired.load(std::memory_order_relaxed) >= fault.times;
}

void sleep_for(std::chrono::nanoseconds time) {
  timespec left{.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// What happens to the process or the thread, not to the call.
void strike(const NcclFault& fault) {
  switch (fault.kind) {
    case Kind::delay: return sleep_for(fault.delay);
    case Kind::kill: std::raise(SIGKILL); break;
    case Kind::hang: std::raise(SIGSTOP); return;  // all threads; whoever continues the process lets the call go on
    case Kind::stall: break;
    default: return;
  }
  for (;;) ::pause();
}

ncclResult_t shrink_and_make(Numbered numbered, const NcclFault& fault) {
  const std::uint64_t planned = fault.count.value_or(numbered.asked - 1);
  if (numbered.asked == 0 || planned >= numbered.asked) {
    const Reason reason = numbered.asked == 0 ? Reason::nothing_to_take : Reason::count_not_below;
    journal({.fault = numbered.fault, .event = FaultEvent::not_fired, .reason = reason, .call = &numbered});
    return make_and_record(numbered);
  }
  journal({.fault = numbered.fault, .call = &numbered});
  numbered.call.count = planned;
  return make_and_record(numbered);
}

ncclResult_t take_effect(const Numbered& numbered) {
  const NcclFault& fault = process().plan->faults[static_cast<std::size_t>(numbered.fault)];
  switch (fault.kind) {
    case Kind::skip:
      journal({.fault = numbered.fault, .call = &numbered});
      record_skipped(numbered);
      return ncclSuccess;
    case Kind::wrong_count: return shrink_and_make(numbered, fault);
    case Kind::reorder: return hold_back(numbered, fault.hold);
    default: break;
  }
  ncclResult_t result = ncclSuccess;
  if (fault.at.after) result = make_and_record(numbered);
  journal({.fault = numbered.fault, .call = &numbered});
  strike(fault);
  return fault.at.after ? result : make_and_record(numbered);
}

// As an entry of the ring; it shows the fault's place among the calls.
void record_in_ring(const JournalLine& line) {
  const Claim claimed = claim(process().ring);
  RingEntry& entry = *claimed.entry;
  const Numbered* call = line.call;
  entry.time = monotonic_ns();
  entry.comm = call && call->comm ? call->comm->id : 0;
  entry.call = call ? call->number : 0;
  entry.sequence = entry.count = entry.asked = entry.stream = 0;
  entry.group = this_thread().group;
  entry.thread = this_thread().id;
  entry.rank = entry.size = entry.dtype = entry.redop = entry.peer = unknown;
  entry.op = Op::fault;
  entry.event = line.event;
  entry.reason = line.reason;
  entry.fault = line.fault;
  entry.state.store(State::returned, std::memory_order_relaxed);
  entry.result.store(0, std::memory_order_relaxed);
  entry.duration.store(0, std::memory_order_relaxed);
  publish(claimed);
}

bool rank_was_here(std::int32_t rank) {
  for (int i = 0; i < comm_slot_count; ++i) {
    const CommSlot& slot = process().ring.comms[i];
    if (slot.handle.load() != 0 && slot.global_rank == rank) return true;
  }
  return false;
}

}  // namespace

void open_journal() noexcept {
  Process& state = process();
  if (state.journal >= 0) ::close(state.journal);
  state.journal = -1;
  if (state.plan->faults.empty()) return;
  state.journal = ::open(journal_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (state.journal < 0) give_up(fmt::format("cannot open {}: {}", journal_path(), std::strerror(errno)).c_str());
}

void arm_faults() noexcept {
  Process& state = process();
  std::uint64_t active = 0;
  if (!state.plan->faults.empty()) count_earlier_firings();
  for (std::size_t i = 0; i < state.plan->faults.size(); ++i) {
    const NcclFault& fault = state.plan->faults[i];
    FaultSlot& slot = state.ring.faults[i];
    slot.kind = fault.kind;
    slot.rank = fault.at.rank;
    const bool of_this_attempt = !fault.at.attempt || *fault.at.attempt == state.options->attempt;
    if (of_this_attempt && used_up(fault, slot)) slot.reason.store(Reason::used_up);
    if (of_this_attempt && !used_up(fault, slot)) active |= std::uint64_t{1} << i;
  }
  state.active.store(active);
}

std::int32_t fault_for(const Numbered& numbered) noexcept {
  if (!numbered.comm) return unknown;
  Process& state = process();
  std::int32_t hit = unknown;
  for (std::uint64_t left = state.active.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const NcclFault& fault = state.plan->faults[i];
    if (!matches(fault.at, numbered.call.op, numbered.comm->global_rank, numbered.comm->number)) continue;
    FaultSlot& slot = state.ring.faults[i];
    const std::uint64_t count = slot.matched.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool past = fault.times != 0 && count >= fault.at.nth + fault.times;
    if (count < fault.at.nth || past || used_up(fault, slot)) continue;
    const auto number = static_cast<std::int32_t>(i);
    if (hit == unknown) {
      hit = number;
    } else {
      journal({.fault = number, .event = FaultEvent::not_fired, .reason = Reason::another_fault, .call = &numbered});
    }
  }
  return hit;
}

ncclResult_t disturb(const Numbered& numbered) noexcept {
  const int saved = errno;
  ncclResult_t result = ncclSuccess;
  bool made = false;
  if (call_is_held()) {
    if (numbered.fault != unknown) {
      release_held_call(Reason::another_fault, "");
    } else {
      made = make_before_held_call(numbered, result);
    }
  }
  if (!made) result = numbered.fault == unknown ? make_and_record(numbered) : take_effect(numbered);
  errno = saved;
  return result;
}

void journal(const JournalLine& line) noexcept {
  Process& state = process();
  FaultSlot& slot = state.ring.faults[line.fault];
  if (line.event == FaultEvent::fired) slot.fired.fetch_add(1);
  slot.last_event.store(line.event);
  slot.reason.store(line.reason);
  const Numbered* call = line.call;
  char text[1024];
  const std::string_view reason = to_string(line.reason);
  const std::string_view op = call ? to_string(call->call.op) : std::string_view();
  const int length = std::snprintf(
      text, sizeof text,
      R"({"event":"%s","fault":%d,"plan":"%016llx","kind":"%s","rank":%d,"op":"%.*s","comm":"%016llx","call":%llu,)"
      R"("reason":"%.*s","detail":"%s","pid":%d,"attempt":%d,"time":%llu})"
      "\n",
      to_string(line.event).data(), line.fault, static_cast<unsigned long long>(state.plan->digest),
      to_string(slot.kind).data(), slot.rank, static_cast<int>(op.size()), op.data(),
      static_cast<unsigned long long>(call && call->comm ? call->comm->id : 0),
      static_cast<unsigned long long>(call ? call->number : 0), static_cast<int>(reason.size()), reason.data(),
      line.detail, static_cast<int>(::getpid()), state.options->attempt,
      static_cast<unsigned long long>(monotonic_ns()));
  if (::write(state.journal, text, static_cast<std::size_t>(length)) != length) {
    give_up("cannot write faults.jsonl, so no fault may take effect (remedy: make room in FIREDRILL_NCCL_DIR)");
  }
  record_in_ring(line);
}

void report_unfired() noexcept {
  forget_held_call(Reason::program_ended);
  const Process& state = process();
  for (std::uint64_t left = state.active.load(); left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const FaultSlot& slot = state.ring.faults[i];
    const bool settled = slot.fired.load() != 0 || slot.last_event.load() == FaultEvent::not_fired;
    if (settled || !rank_was_here(slot.rank)) continue;
    char detail[96];
    std::snprintf(detail, sizeof detail, "%llu matching calls, the fault was for number %llu",
                  static_cast<unsigned long long>(slot.matched.load()),
                  static_cast<unsigned long long>(state.plan->faults[i].at.nth));
    journal({.fault = static_cast<std::int32_t>(i),
             .event = FaultEvent::not_fired,
             .reason = Reason::program_ended,
             .detail = detail});
  }
}

}  // namespace firedrill::interposer
