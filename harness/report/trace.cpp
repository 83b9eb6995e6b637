#include "harness/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/seam/position.h"
#include "harness/report/protobuf.h"

namespace firedrill {
namespace {

// Field numbers of the messages of perfetto's protos.
namespace packet {
constexpr std::uint32_t timestamp = 8, sequence = 10, track_event = 11, track_descriptor = 60;
}
namespace track {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent = 5, counter = 8;
}
namespace track_event {
constexpr std::uint32_t annotation = 4, type = 9, track = 11, category = 22, name = 23, counter_value = 30;
enum Type : std::uint64_t { begin = 1, end = 2, instant = 3, counter = 4 };
}  // namespace track_event
constexpr std::uint64_t unit_bytes = 3;
constexpr std::uint64_t process_track = 1;
constexpr std::uint64_t supervisor_track = 2;

enum class Lane : std::uint64_t { main, beside, memory };

std::uint64_t track_of(int rank, Lane lane) {
  return 16 + 4 * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(lane);
}

class Tracer {
 public:
  explicit Tracer(const std::string& title) {
    Protobuf process;
    process.number(1, 1).text(6, title);
    describe(Protobuf().number(track::uuid, process_track).message(track::process, process));
    describe(child(supervisor_track, "supervisor"));
  }

  void event(std::uint64_t track, track_event::Type type, std::int64_t time, std::string_view name,
             std::string_view category, const Protobuf& more = {}) {
    Protobuf event;
    event.number(track_event::type, type).number(track_event::track, track);
    if (!name.empty()) event.text(track_event::name, name);
    if (!category.empty()) event.text(track_event::category, category);
    event.append(more);
    add(Protobuf()
            .number(packet::timestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(0, time)))
            .number(packet::sequence, 1)
            .message(packet::track_event, event));
  }
  void slice(std::uint64_t track, std::int64_t from, std::int64_t to, std::string_view name, std::int64_t step) {
    event(track, track_event::begin, from, name, "phase",
          Protobuf().message(track_event::annotation,
                             Protobuf().text(10, "step").number(4, static_cast<std::uint64_t>(step))));
    event(track, track_event::end, to, "", "");
  }
  // The track of a rank, described when first asked for.
  std::uint64_t of(int rank, Lane lane) {
    if (rank < 0) return supervisor_track;
    const std::uint64_t id = track_of(rank, lane);
    if (std::find(described_.begin(), described_.end(), id) != described_.end()) return id;
    described_.push_back(id);
    const char* suffix = lane == Lane::main ? "" : lane == Lane::beside ? ", second task" : ", bytes held";
    Protobuf descriptor = child(id, fmt::format("rank {}{}", rank, suffix));
    if (lane == Lane::memory) descriptor.message(track::counter, Protobuf().number(3, unit_bytes));
    describe(descriptor);
    return id;
  }
  const std::string& bytes() const { return trace_.bytes(); }

 private:
  static Protobuf child(std::uint64_t id, std::string_view name) {
    return Protobuf().number(track::uuid, id).text(track::name, name).number(track::parent, process_track);
  }
  void describe(const Protobuf& descriptor) {
    add(Protobuf().number(packet::sequence, 1).message(packet::track_descriptor, descriptor));
  }
  void add(const Protobuf& one) { trace_.message(1, one); }

  Protobuf trace_;
  std::vector<std::uint64_t> described_;
};

bool is_phase(std::string_view name) {
  const auto phase = phase_from(name);
  return name == "other" || (phase && *phase != Phase::none);
}

// Puts the accounts of steps on the tracks of their ranks.
class Slices {
 public:
  Slices(const History& history, Tracer& tracer) : history_(history), tracer_(tracer) {}

  void add(const Event& event) {
    Told& told = told_[event.rank];
    if (told.time != event.time || told.step != event.step) flush(event.rank, told);
    told.time = event.time;
    told.step = event.step;
    told.phases.push_back(event);
  }
  void close() {
    for (auto& [rank, told] : told_) flush(rank, told);
  }

 private:
  struct Told {
    Time time{0};
    std::int64_t step = 0;
    std::vector<Event> phases;
    std::int64_t until = 0;  // where the slices of the main track end
  };

  void flush(int rank, Told& told) {
    std::int64_t all = 0;
    for (const Event& event : told.phases) all += event.a;
    std::int64_t at = told.time.count() - all;
    const bool beside = at < told.until;
    const std::uint64_t track = told.phases.empty() ? 0 : tracer_.of(rank, beside ? Lane::beside : Lane::main);
    for (const Event& event : told.phases) {
      if (event.a <= 0) continue;
      tracer_.slice(track, at, at + event.a, history_.text(event.name), event.step);
      at += event.a;
    }
    if (!beside && !told.phases.empty()) told.until = at;
    told.phases.clear();
  }

  const History& history_;
  Tracer& tracer_;
  std::map<int, Told> told_;
};

// What is shown as an instant; empty: the event is not.
std::string instant_of(const History& history, const Event& event) {
  const std::string_view name = history.text(event.name);
  switch (event.kind) {
    case EventKind::fault_fired: return fmt::format("fault: {}", name);
    case EventKind::rank_ended: return event.a == 0 ? "" : event.a == 2 ? "died" : fmt::format("failed: {}", name);
    case EventKind::suspected: return fmt::format("blames rank {}", event.a);
    case EventKind::committed: return fmt::format("committed {}", name);
    case EventKind::validated: return fmt::format("validated {}", name);
    case EventKind::acknowledged: return fmt::format("acknowledged {}", name);
    case EventKind::save_failed: return fmt::format("save of step {} failed", event.step);
    case EventKind::restored: return fmt::format("restored {}", name);
    case EventKind::node_lost: return fmt::format("node {} lost", event.a);
    case EventKind::floor_lowered: return fmt::format("floor lowered to {}", event.b);
    default: return "";
  }
}

}  // namespace

std::string to_perfetto(const History& history, const std::string& title) {
  Tracer tracer(title);
  Slices slices(history, tracer);
  for (const Event& event : history.events()) {
    const std::int64_t time = event.time.count();
    if (event.kind == EventKind::time_spent && is_phase(history.text(event.name))) slices.add(event);
    if (event.kind == EventKind::attempt_started) {
      tracer.event(supervisor_track, track_event::begin, time, fmt::format("attempt {}", event.attempt), "attempt");
    }
    if (event.kind == EventKind::attempt_ended) tracer.event(supervisor_track, track_event::end, time, "", "");
    if (event.kind == EventKind::memory_used && event.rank >= 0) {
      tracer.event(tracer.of(event.rank, Lane::memory), track_event::counter, time, "", "",
                   Protobuf().number(track_event::counter_value, static_cast<std::uint64_t>(event.a)));
    }
    const std::string instant = instant_of(history, event);
    if (instant.empty()) continue;
    tracer.event(tracer.of(event.rank, Lane::main), track_event::instant, time, instant, to_string(event.kind));
  }
  slices.close();
  return tracer.bytes();
}

}  // namespace firedrill
