// The explicit engine: every cell that can be reached gets every legal value, before anything is read. The names of the
// root are on the agenda first; a name that leads somewhere puts the names or the content it leads to on it.
#include <algorithm>
#include <memory>

#include "harness/explore/crash_content.h"
#include "harness/explore/workers.h"

namespace firedrill {
namespace {

using crash::CellId;
using crash::CellKind;
using crash::InodeId;
using crash::ValueIndex;

// Prefixes of the agenda are dealt out to the jobs at a length at which there are at least so many of them.
constexpr std::size_t dealt_min = 512;

class ExplicitWalk final : public Decider {
 public:
  // Called with each prefix of the given length, and with each leaf: whether to go on below.
  struct Visitor {
    std::function<bool(std::uint64_t hash)> prefix;
    std::function<bool()> leaf;  // false: stop
  };

  explicit ExplicitWalk(const crash::CrashSpace& space)
      : space_(space), partial_(space), content_(partial_, *this), seen_(space.inode_count(), false) {
    reach(space.root());
  }

  DiskContent& content() { return content_; }
  crash::Partial& partial() { return partial_; }

  // Walks all assignments of the first `length` cells of the agenda, and the leaves below where prefix() says so.
  bool walk(std::size_t length, const Visitor& visitor) {
    length_ = length;
    visitor_ = &visitor;
    return descend(0, 0x9E3779B97F4A7C15ULL);
  }

  // All that can be reached is assigned, so nobody asks.
  void decide(CellId cell) override {
    FD_CHECK(false, "{} was read, and could not be reached", space_.cell(cell).name);
  }

 private:
  bool descend(std::size_t at, std::uint64_t hash) {
    const bool leaf = at == agenda_.size();
    // A leaf that is shorter than the prefixes counts as one.
    if ((at == length_ || (leaf && at < length_)) && !visitor_->prefix(hash)) return true;
    if (leaf) return visitor_->leaf();
    const CellId cell = agenda_[at];
    const auto& values = space_.cell(cell).values;
    for (ValueIndex value = 0; value < values.size(); ++value) {
      if (!partial_.assign(cell, value)) continue;
      const std::size_t agenda_before = agenda_.size();
      const InodeId inode = space_.cell(cell).kind == CellKind::name ? values[value].inode : crash::no_inode;
      const bool first_name = inode != crash::no_inode && !seen_[inode];
      if (first_name) reach(inode);
      std::uint64_t below = (hash ^ (std::uint64_t{cell} << 32 | value)) * 0xFF51AFD7ED558CCDULL;
      below ^= below >> 33;
      const bool goes_on = descend(at + 1, below);
      if (first_name) {
        agenda_.resize(agenda_before);
        seen_[inode] = false;
      }
      partial_.undo();
      if (!goes_on) return false;
    }
    return true;
  }

  void reach(InodeId inode) {
    seen_[inode] = true;
    if (space_.kind(inode) == FileKind::file) {
      agenda_.push_back(space_.content_cell(inode));
      return;
    }
    const auto names = space_.names(inode);
    agenda_.insert(agenda_.end(), names.begin(), names.end());
  }

  const crash::CrashSpace& space_;
  crash::Partial partial_;
  CrashContent content_;
  std::vector<CellId> agenda_;
  std::vector<bool> seen_;  // by inode: on the agenda
  std::size_t length_ = 0;
  const Visitor* visitor_ = nullptr;
};

// The shortest prefixes that are enough to go round.
std::size_t dealt_length(const crash::CrashSpace& space) {
  ExplicitWalk walk(space);
  for (std::size_t length = 1;; length += 1 + length / 8) {
    std::size_t prefixes = 0;
    walk.walk(length, {.prefix =
                           [&prefixes](std::uint64_t) {
                             ++prefixes;
                             return false;
                           },
                       .leaf = [] { return true; }});
    // Longer ones than there are cells do not exist.
    if (prefixes >= dealt_min || length > space.cell_count()) return length;
  }
}

}  // namespace

Exploration explore_explicitly(const crash::CrashSpace& space, const CheckSubject& subject,
                               const ExploreOptions& options) {
  Workers workers(options);
  const auto jobs = static_cast<std::uint64_t>(std::max(1, options.jobs));
  const std::size_t length = dealt_length(space);
  return workers.run(EngineKind::explicit_states, [&](int job, Exploration& mine) {
    RestoreCheck check(subject, {.keep_digests = options.keep_digests});
    ExplicitWalk walk(space);
    std::uint64_t leaves = 0;
    walk.walk(length, {.prefix = [&](std::uint64_t hash) { return hash % jobs == static_cast<std::uint64_t>(job); },
                       .leaf =
                           [&] {
                             if (workers.must_stop(mine)) return false;
                             const CheckAnswer& answer = check.check(walk.content());
                             ++mine.runs;
                             ++leaves;
                             judge(mine, answer, walk.partial(), workers);
                             if (options.on_leaf) options.on_leaf(walk.partial(), answer);
                             return true;
                           }});
    mine.covered = leaves;
  });
}

}  // namespace firedrill
