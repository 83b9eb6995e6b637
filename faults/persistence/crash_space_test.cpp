// CrashSpace against the slow checker, on small random traces under every profile.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "faults/persistence/counter.h"
#include "faults/persistence/test_slow.h"
#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_walk.h"

namespace firedrill::crash {
namespace {

// 0 .. n - 1, all as likely in the first trial as in the last.
int below(int n) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n)); }

// Draws one small trace: three programs on two nodes, names in two directories, a few writes, syncs that may fail.
class Draw {
 public:
  Trace operator()() {
    builder_.base("d").base("b", pattern(700, 1));
    const int operations = 2 + below(14);
    for (int i = 0; i < operations; ++i) {
      const int rank = below(3);
      builder_.rank(rank, rank / 2);
      const auto known = static_cast<OperationId>(builder_.trace().operations.size());
      if (known > 0 && below(3) > 0) builder_.after(static_cast<OperationId>(below(static_cast<int>(known))));
      draw();
    }
    return builder_.trace();
  }

 private:
  std::string path() { return *rc::gen::element<std::string>("a", "b", "d/a", "d/c", "e/a"); }
  void draw() {
    const std::string at = path();
    const bool parent_is_there = parent_path(at).empty() || builder_.holds(parent_path(at));
    switch (below(11)) {
      case 0:
      case 1:
      case 2:
        if (names_ < 5) draw_name(at, parent_is_there);
        break;
      case 3:
      case 4:
      case 5:
        if (builder_.holds(at) && writes_++ < 3) draw_write(at);
        break;
      case 6:
      case 7:
        if (!builder_.holds(at)) break;
        may_fail();
        below(3) > 0 ? builder_.sync(at) : builder_.close(at);
        break;
      case 8:
      case 9:
        if (!parent_is_there) break;
        may_fail();
        builder_.sync_directory(parent_path(at));
        break;
      default: builder_.acknowledge(++step_);
    }
  }
  void draw_name(const std::string& at, bool parent_is_there) {
    const std::string to = path();
    const bool can_move = parent_path(to).empty() || builder_.holds(parent_path(to));
    ++names_;
    if (!builder_.holds("e") && below(4) == 0) {
      builder_.make_directory("e");
    } else if (parent_is_there && !builder_.holds(at)) {
      builder_.create(at);
    } else if (builder_.holds(at) && below(3) == 0) {
      builder_.remove(at);
    } else if (builder_.holds(at) && can_move && at != to) {
      builder_.rename(at, to);
    }
  }
  void may_fail() {
    if (below(6) == 0) builder_.failing();
  }
  void draw_write(const std::string& at) {
    may_fail();
    const std::int64_t offset = *rc::gen::element<std::int64_t>(0, 300, 512);
    const std::int64_t size = *rc::gen::element<std::int64_t>(200, 512, 900, 1600);
    builder_.write(at, offset, pattern(size, 2 + writes_));
  }

  TraceBuilder builder_;
  int names_ = 0;
  int writes_ = 0;
  std::int64_t step_ = 0;
};

std::string to_text(const Trace& trace) {
  std::string text;
  for (OperationId id = 0; id < trace.operations.size(); ++id) {
    text += std::to_string(id) + ": " + describe(trace, id) + " after";
    for (const OperationId earlier : trace.operations[id].after) text += " " + std::to_string(earlier);
    text += "\n";
  }
  return text;
}

void compare(const Trace& trace, const ProfileOptions& profile, const std::vector<OperationId>& certain) {
  std::map<Content, std::int64_t> expected = SlowChecker(trace, profile, certain).run();
  const auto space = space_of(trace, profile, certain);
  std::uint64_t leaves = 0;
  std::map<Content, std::int64_t> found;
  SpaceWalk(*space).run([&](Partial& partial) {
    ++leaves;
    const std::optional<CheckpointId> required = partial.requirement();
    found.emplace(SpaceWalk::content(partial), required ? required->step : 0);
  });
  RC_ASSERT(found.size() == expected.size());
  RC_ASSERT(found == expected);
  RC_ASSERT(leaves == found.size());
  RC_ASSERT(count(*space) == Count(leaves));
}

void check_profile(const ProfileOptions& profile) {
  const bool passed = rc::check(describe(profile), [&] {
    const Trace trace = Draw()();
    RC_LOG(to_text(trace));
    std::vector<OperationId> certain;
    if (!trace.operations.empty() && below(3) == 0) {
      certain.push_back(static_cast<OperationId>(below(static_cast<int>(trace.operations.size()))));
    }
    compare(trace, profile, certain);
  });
  EXPECT_TRUE(passed);
}

TEST(CrashSpace, HoldsWhatTheSlowCheckerFindsUnderPosix) {
  check_profile({.kind = ProfileKind::posix});
  check_profile({.kind = ProfileKind::posix, .torn = false, .zeros = false});
}

TEST(CrashSpace, HoldsWhatTheSlowCheckerFindsUnderPosixWithRenamesThatTear) {
  check_profile({.kind = ProfileKind::posix, .atomic_rename = false});
}

TEST(CrashSpace, HoldsWhatTheSlowCheckerFindsUnderPosixWithCachesPerNode) {
  check_profile({.kind = ProfileKind::posix, .node_caches = true});
}

TEST(CrashSpace, HoldsWhatTheSlowCheckerFindsUnderExt4) {
  check_profile({.kind = ProfileKind::ext4});
  check_profile({.kind = ProfileKind::ext4, .zeros = false});
  check_profile({.kind = ProfileKind::ext4, .replace_flushes = true});
}

TEST(CrashSpace, HoldsWhatTheSlowCheckerFindsUnderNfs) { check_profile({.kind = ProfileKind::nfs}); }
}  // namespace
}  // namespace firedrill::crash
