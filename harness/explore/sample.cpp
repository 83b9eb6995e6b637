#include "harness/explore/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "engine/base/rng.h"
#include "harness/explore/crash_content.h"
#include "harness/explore/workers.h"

namespace firedrill {
namespace {

using crash::CellId;
using crash::CellKind;
using crash::InodeId;
using crash::Operation;
using crash::OperationId;
using crash::ValueIndex;

using Clock = std::chrono::steady_clock;

// A disk to which operations are applied one after another, some of them in vain.
class Replayed {
 public:
  explicit Replayed(const crash::Trace& trace) {
    live_[""] = crash::root_inode;
    for (const crash::BaseEntry& entry : trace.base) {
      live_[entry.path] = entry.inode;
      set(entry.path, entry.inode);
      if (entry.kind == FileKind::file) bytes_[entry.inode] = entry.bytes.text();
    }
  }

  void apply(const Operation& operation, bool lost) {
    if (operation.kind != crash::OperationKind::file || operation.error) return;
    switch (operation.op) {
      case FileOp::create:
      case FileOp::make_directory: enter(operation.path, operation.inode, lost); break;
      case FileOp::remove: enter(operation.path, crash::no_inode, lost); break;
      case FileOp::rename:
        enter(operation.second, operation.inode, lost);
        enter(operation.path, crash::no_inode, lost);
        break;
      case FileOp::write:
        if (!lost) write(operation);
        break;
      default: break;
    }
  }
  InodeId name(InodeId directory, const std::string& name) const {
    const auto at = names_.find({directory, name});
    return at == names_.end() ? crash::no_inode : at->second;
  }
  std::string_view bytes(InodeId file) const {
    const auto at = bytes_.find(file);
    return at == bytes_.end() ? std::string_view() : std::string_view(at->second);
  }

 private:
  void enter(const std::string& path, InodeId inode, bool lost) {
    if (!lost) set(path, inode);
    live_[path] = inode;
  }
  void set(const std::string& path, InodeId inode) {
    names_[{live_[std::string(parent_path(path))], std::string(file_name(path))}] = inode;
  }
  void write(const Operation& operation) {
    std::string& bytes = bytes_[operation.inode];
    const auto from = static_cast<std::size_t>(operation.offset);
    if (bytes.size() < from + operation.bytes.size()) bytes.resize(from + operation.bytes.size(), '\0');
    bytes.replace(from, operation.bytes.size(), operation.bytes.text());
  }

  std::map<std::string, InodeId> live_;  // as all see it
  std::map<std::pair<InodeId, std::string>, InodeId> names_;
  std::map<InodeId, std::string> bytes_;
};

class StateSampler final : public Decider {
 public:
  StateSampler(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& options,
               std::uint64_t seed)
      : space_(space),
        workers_(options),
        check_(subject, {.keep_digests = options.keep_digests}),
        partial_(space),
        content_(partial_, *this),
        rng_(seed) {
    std::vector<bool> certain(space.trace().operations.size(), false);
    for (const OperationId id : space.options().certain) certain[id] = true;
    for (OperationId id = 0; id < certain.size(); ++id) {
      const Operation& operation = space.trace().operations[id];
      const bool changes = operation.kind == crash::OperationKind::file && changes_disk(operation.op) &&
                           operation.op != FileOp::sync && operation.op != FileOp::sync_directory;
      if (!certain[id] && changes) in_flight_.push_back(id);
    }
  }

  Sampling run(const SampleOptions& sample) {
    const auto after = [began = Clock::now()](double seconds) {
      return began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    const auto end = after(sample.seconds);
    const auto systematic = after(sample.random ? sample.seconds * 0.8 : sample.seconds);
    bool goes_on = true;
    std::array<bool, 3> all{};
    for (int count = 0; count <= sample.losses_max && goes_on; ++count) {
      goes_on = all[static_cast<std::size_t>(count)] = losses(count, systematic);
    }
    std::uint64_t random = 0;
    while (sample.random && Clock::now() < end && !stopped_) {
      sample_random();
      ++random;
    }
    const auto said = [&all](std::size_t count) { return all[count] ? "every" : "not every"; };
    Sampling sampling;
    sampling.words = fmt::format(
        "sampled: {} prefix of the {} operations in flight, {} single loss in them, {} pair of losses, {} "
        "random states",
        said(0), in_flight_.size(), said(1), said(2), random);
    mine_.complete = false;
    sampling.exploration = std::move(mine_);
    return sampling;
  }

  void decide(CellId cell) override {
    for (ValueIndex value = 0; value < space_.cell(cell).values.size(); ++value) {
      if (partial_.assign(cell, value)) return;
    }
  }

 private:
  // All states of every prefix with so many losses. False: the time was not enough.
  bool losses(int count, Clock::time_point end) {
    // The longest first: behind the last acknowledgement most is owed.
    for (std::size_t prefix = in_flight_.size() + 1; prefix-- > 0;) {
      const std::size_t firsts = count >= 1 ? prefix : 1;
      for (std::size_t first = 0; first < firsts; ++first) {
        const std::size_t seconds = count >= 2 ? first : 1;
        for (std::size_t second = 0; second < seconds; ++second) {
          if (stopped_ || Clock::now() >= end) return false;
          std::vector<OperationId> lost;
          if (count >= 1) lost.push_back(in_flight_[first]);
          if (count >= 2) lost.push_back(in_flight_[second]);
          sample(prefix, lost);
        }
      }
    }
    return true;
  }

  void sample(std::size_t prefix, const std::vector<OperationId>& lost) {
    const auto& operations = space_.trace().operations;
    const std::size_t end = prefix < in_flight_.size() ? in_flight_[prefix] : operations.size();
    Replayed disk(space_.trace());
    for (OperationId id = 0; id < end; ++id) {
      disk.apply(operations[id], std::find(lost.begin(), lost.end(), id) != lost.end());
    }
    partial_.undo_to(0);
    if (assign_below(space_.root(), disk)) look();
  }

  bool assign_below(InodeId directory, const Replayed& disk) {
    for (const CellId cell : space_.names(directory)) {
      const InodeId inode = disk.name(directory, space_.cell(cell).name);
      if (!assign(cell, [inode](const crash::CellValue& value) { return value.inode == inode; })) return false;
      if (inode == crash::no_inode) continue;
      if (space_.kind(inode) == FileKind::directory) {
        if (!assign_below(inode, disk)) return false;
        continue;
      }
      const CellId content = space_.content_cell(inode);
      const std::string_view bytes = disk.bytes(inode);
      const bool known = partial_.value(content).has_value();
      if (!known && !assign(content, [bytes](const crash::CellValue& value) {
            return (value.bytes ? value.bytes.text() : std::string_view()) == bytes;
          })) {
        return false;
      }
    }
    return true;
  }

  template <class Wanted>
  bool assign(CellId cell, const Wanted& wanted) {
    const auto& values = space_.cell(cell).values;
    for (ValueIndex value = 0; value < values.size(); ++value) {
      if (wanted(values[value])) return partial_.assign(cell, value);
    }
    return false;
  }

  void sample_random() {
    partial_.undo_to(0);
    std::vector<CellId> agenda(space_.names(space_.root()).begin(), space_.names(space_.root()).end());
    for (std::size_t at = 0; at < agenda.size(); ++at) {
      const CellId cell = agenda[at];
      if (partial_.value(cell)) continue;
      const auto& values = space_.cell(cell).values;
      const auto first = static_cast<ValueIndex>(rng_.below(values.size()));
      for (ValueIndex i = 0; i < values.size(); ++i) {
        if (partial_.assign(cell, static_cast<ValueIndex>((first + i) % values.size()))) break;
      }
      if (space_.cell(cell).kind != CellKind::name) continue;
      const InodeId inode = values[*partial_.value(cell)].inode;
      if (inode == crash::no_inode) continue;
      if (space_.kind(inode) == FileKind::file) {
        agenda.push_back(space_.content_cell(inode));
      } else {
        agenda.insert(agenda.end(), space_.names(inode).begin(), space_.names(inode).end());
      }
    }
    look();
  }

  void look() {
    const CheckAnswer& answer = check_.check(content_);
    ++mine_.runs;
    judge(mine_, answer, partial_, workers_);
    stopped_ = workers_.options().stop_at_first && mine_.violations > 0;
  }

  const crash::CrashSpace& space_;
  Workers workers_;
  RestoreCheck check_;
  crash::Partial partial_;
  CrashContent content_;
  Rng rng_;
  std::vector<OperationId> in_flight_;
  Exploration mine_;
  bool stopped_ = false;
};

}  // namespace

Sampling sample_states(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& options,
                       const SampleOptions& sample) {
  return StateSampler(space, subject, options, sample.seed).run(sample);
}

}  // namespace firedrill
