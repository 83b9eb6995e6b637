// The lazy engine: a cell's value is chosen when the code under test first reads it. One run follows the choices of the
// run before up to the last one that has another legal value left, takes that, and beyond it always the first legal
// one.
#include <algorithm>
#include <memory>

#include "faults/persistence/counter.h"
#include "harness/explore/crash_content.h"
#include "harness/explore/workers.h"

namespace firedrill {
namespace {

using crash::CellId;
using crash::ValueIndex;

// Prefixes of so many real choices are dealt out to the jobs.
constexpr std::size_t dealt_depth = 6;

class LazyWalk final : public Decider {
 public:
  LazyWalk(const crash::CrashSpace& space, int job, int jobs)
      : space_(space), partial_(space), content_(partial_, *this), job_(job), jobs_(jobs) {}

  DiskContent& content() { return content_; }
  crash::Partial& partial() { return partial_; }

  void begin_run() {
    partial_.undo_to(0);
    taken_ = 0;
    real_choices_ = 0;
    prefix_ = 0x9E3779B97F4A7C15ULL;
    foreign_ = false;
  }

  // Whether the run belongs to another job. Short runs belong by all of their choices.
  bool foreign() const { return foreign_ || (real_choices_ < dealt_depth && owner() != job_); }

  // Makes the next run take another value at the last choice that has one. False: all were taken.
  bool advance() {
    // Of a prefix that is another job's nothing below is of interest.
    if (foreign_) path_.resize(std::min(path_.size(), foreign_at_));
    while (!path_.empty()) {
      Choice& last = path_.back();
      partial_.undo_to(path_.size() - 1);
      for (ValueIndex next = last.value + 1; next < values_of(last.cell); ++next) {
        if (!partial_.feasible(last.cell, next)) continue;
        last.value = next;
        last.real = true;
        return true;
      }
      path_.pop_back();
    }
    return false;
  }

  void decide(CellId cell) override {
    if (taken_ == path_.size()) path_.push_back(first_choice(cell));
    const Choice& choice = path_[taken_];
    FD_CHECK(choice.cell == cell,
             "a run that repeats the choices of another one read something else: {} after {} reads",
             space_.cell(cell).name, taken_);
    const bool fits = partial_.assign(cell, choice.value);
    FD_CHECK(fits, "a choice that fitted before does not fit now");
    ++taken_;
    if (!choice.real || foreign_ || real_choices_ >= dealt_depth) return;
    prefix_ = (prefix_ ^ (std::uint64_t{cell} << 32 | choice.value)) * 0xFF51AFD7ED558CCDULL;
    prefix_ ^= prefix_ >> 33;
    if (++real_choices_ == dealt_depth && owner() != job_) {
      foreign_ = true;
      foreign_at_ = taken_;
    }
  }

 private:
  struct Choice {
    CellId cell = 0;
    ValueIndex value = 0;
    bool real = false;  // there is more than one legal value
  };

  ValueIndex values_of(CellId cell) const { return static_cast<ValueIndex>(space_.cell(cell).values.size()); }
  int owner() const { return static_cast<int>(prefix_ % static_cast<std::uint64_t>(jobs_)); }

  Choice first_choice(CellId cell) {
    Choice choice{.cell = cell};
    bool found = false;
    for (ValueIndex value = 0; value < values_of(cell) && !choice.real; ++value) {
      if (!partial_.feasible(cell, value)) continue;
      if (found) choice.real = true;
      if (!found) choice.value = value;
      found = true;
    }
    FD_CHECK(found, "{} has no legal value left", space_.cell(cell).name);
    return choice;
  }

  const crash::CrashSpace& space_;
  crash::Partial partial_;
  CrashContent content_;
  int job_;
  int jobs_;
  std::vector<Choice> path_;
  std::size_t taken_ = 0;
  std::size_t real_choices_ = 0;
  std::uint64_t prefix_ = 0;
  bool foreign_ = false;
  std::size_t foreign_at_ = 0;
};

}  // namespace

Exploration explore_lazily(const crash::CrashSpace& space, const CheckSubject& subject, const ExploreOptions& options) {
  Workers workers(options);
  return workers.run(EngineKind::lazy, [&](int job, Exploration& mine) {
    RestoreCheck check(subject, {.keep_digests = options.keep_digests});
    LazyWalk walk(space, job, std::max(1, options.jobs));
    crash::Counter counter(space);
    do {
      if (workers.must_stop(mine)) return;
      walk.begin_run();
      const CheckAnswer& answer = check.check(walk.content());
      ++mine.runs;
      if (walk.foreign()) continue;
      const std::uint64_t violations = mine.violations;
      judge(mine, answer, walk.partial(), workers);
      if (options.on_leaf && mine.violations == violations) options.on_leaf(walk.partial(), answer);
      mine.covered += counter.count(walk.partial());
    } while (walk.advance());
  });
}

}  // namespace firedrill
