// Partial: what it requires, what it shows, and that it can always be completed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/persistence/test_trace.h"
#include "faults/persistence/test_views.h"

namespace firedrill::crash {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A publish in small: a shard, a manifest under a temporary name, the rename that commits it, the acknowledgement.
Trace publish() {
  TraceBuilder trace;
  trace.base("shards").base("tmp").base("manifests").rank(0);
  trace.create("shards/a");
  trace.write("shards/a", 0, letters('A', 1600));
  trace.sync("shards/a");
  trace.sync_directory("shards");
  trace.create("tmp/4");
  trace.write("tmp/4", 0, letters('M', 100));
  trace.sync("tmp/4");
  trace.rename("tmp/4", "manifests/4");
  trace.commit(4);
  trace.sync_directory("manifests");
  trace.acknowledge(4);
  return trace.trace();
}

struct Cells {
  explicit Cells(const CrashSpace& crash_space) : space(crash_space) {}
  CellId operator()(std::string_view path) const {
    InodeId directory = root_inode;
    if (const std::string_view parent = parent_path(path); !parent.empty()) {
      directory = space.cell(*space.name_cell(directory, parent)).values[0].inode;
    }
    return *space.name_cell(directory, file_name(path));
  }
  // The value of a name cell that is there or not.
  ValueIndex present(CellId cell, bool there) const {
    const std::vector<CellValue>& values = space.cell(cell).values;
    for (ValueIndex value = 0; value < values.size(); ++value) {
      if ((values[value].inode != no_inode) == there) return value;
    }
    FD_CHECK(false, "cell {} has no such value", cell);
  }
  const CrashSpace& space;
};

TEST(Partial, AManifestBringsItsShards) {
  const auto space = space_of(publish());
  const Cells cells(*space);
  Partial partial(*space);
  ASSERT_TRUE(partial.assign(cells("manifests/4"), cells.present(cells("manifests/4"), true)));
  EXPECT_FALSE(partial.assign(cells("shards/a"), cells.present(cells("shards/a"), false)));
  ASSERT_TRUE(partial.assign(cells("shards/a"), cells.present(cells("shards/a"), true)));
  const CellId content = space->content_cell(space->cell(cells("shards/a")).values[1].inode);
  int legal = 0;
  for (ValueIndex value = 0; value < space->cell(content).values.size(); ++value) {
    legal += partial.feasible(content, value) ? 1 : 0;
  }
  EXPECT_EQ(legal, 1);
}

TEST(Partial, RequiresWhatMayHaveBeenAcknowledged) {
  const auto space = space_of(publish());
  const Cells cells(*space);
  Partial partial(*space);
  EXPECT_EQ(partial.requirement(), (CheckpointId{4, 1, 1}));
  ASSERT_TRUE(partial.assign(cells("manifests/4"), cells.present(cells("manifests/4"), false)));
  EXPECT_EQ(partial.requirement(), std::nullopt) << "the directory's sync came before the acknowledgement";
  EXPECT_EQ(partial.newest_committed(), (CheckpointId{4, 1, 1})) << "a crash before that sync may lose the rename";
  ASSERT_TRUE(partial.assign(cells("shards/a"), cells.present(cells("shards/a"), false)));
  EXPECT_EQ(partial.newest_committed(), std::nullopt);
}

TEST(Partial, AChosenWindowIsGivenUpForAnotherOneWhereItMustBe) {
  const auto space = space_of(publish());
  const Cells cells(*space);
  Partial partial(*space);
  // tmp/4 is absent before its create and after its rename.
  ASSERT_TRUE(partial.assign(cells("tmp/4"), cells.present(cells("tmp/4"), false)));
  ASSERT_TRUE(partial.assign(cells("manifests/4"), cells.present(cells("manifests/4"), true)));
  partial.undo();
  ASSERT_TRUE(partial.assign(cells("manifests/4"), cells.present(cells("manifests/4"), false)));
  EXPECT_EQ(partial.requirement(), std::nullopt);
  partial.undo();
  EXPECT_EQ(partial.requirement(), (CheckpointId{4, 1, 1}));
  EXPECT_EQ(partial.depth(), 1);
}

TEST(Partial, EveryCellHasALegalValueLeftWhateverIsAssigned) {
  const auto space = space_of(publish(), {.atomic_rename = false});
  int looked_at = 0;
  SpaceWalk(*space).run([&](Partial& partial) {
    for (CellId cell = 0; cell < space->cell_count(); ++cell) {
      if (partial.value(cell)) continue;
      ++looked_at;
      bool any = false;
      for (ValueIndex value = 0; value < space->cell(cell).values.size(); ++value) {
        any = any || partial.feasible(cell, value);
      }
      EXPECT_TRUE(any);
    }
  });
  EXPECT_GT(looked_at, 0);
}

TEST(Partial, SizesSplitContents) {
  const auto space = space_of(publish());
  const Cells cells(*space);
  const InodeId file = space->cell(cells("shards/a")).values[1].inode;
  Partial partial(*space);
  ASSERT_TRUE(partial.assign(cells("shards/a"), 1));
  const Cell& sizes = space->cell(space->size_cell(file));
  const Cell& contents = space->cell(space->content_cell(file));
  ASSERT_EQ(sizes.values.size(), 2);
  int together = 0;
  for (ValueIndex size = 0; size < sizes.values.size(); ++size) {
    ASSERT_TRUE(partial.assign(space->size_cell(file), size));
    for (ValueIndex value = 0; value < contents.values.size(); ++value) {
      const bool fits = partial.feasible(space->content_cell(file), value);
      EXPECT_EQ(fits, contents.values[value].size == sizes.values[size].size);
      together += fits ? 1 : 0;
    }
    partial.undo();
  }
  EXPECT_EQ(together, 6);
}

TEST(Partial, ShowsTheShortestWayAndWhatBecameOfEachOperation) {
  const auto space = space_of(publish(), {.zeros = false});
  const Cells cells(*space);
  const CellId shard = cells("shards/a");
  const CellId content = space->content_cell(space->cell(shard).values[1].inode);
  Partial partial(*space);
  ASSERT_TRUE(partial.assign(cells("tmp/4"), cells.present(cells("tmp/4"), false)));
  ASSERT_TRUE(partial.assign(shard, cells.present(shard, true)));
  ValueIndex torn = 0;
  while (runs_of(space->cell(content).values[torn].bytes) != "A512 0512 A576") ++torn;
  ASSERT_TRUE(partial.assign(content, torn));
  EXPECT_THAT(partial.shortest_cut(), ElementsAre(0, 1));
  const std::vector<Fate> picture = partial.picture();
  ASSERT_EQ(picture.size(), 2);
  EXPECT_EQ(picture[0].what, "durable");
  EXPECT_EQ(picture[1].what, "torn at sector 1");
  EXPECT_EQ(space->describe(content, torn), "shards/a (1600 bytes): torn at sector 1");
  EXPECT_EQ(space->describe(shard, cells.present(shard, true)), "shards/a is there (by rank 0's create of shards/a)");
  EXPECT_EQ(space->describe(shard, cells.present(shard, false)), "shards/a is absent");
}

TEST(Partial, APictureTellsTheTwoNamesOfARenameApart) {
  const auto space = space_of(publish(), {.atomic_rename = false});
  const Cells cells(*space);
  Partial partial(*space);
  ASSERT_TRUE(partial.assign(cells("manifests/4"), cells.present(cells("manifests/4"), true)));
  ASSERT_TRUE(partial.assign(cells("tmp/4"), cells.present(cells("tmp/4"), true)));
  const std::vector<Fate> picture = partial.picture();
  EXPECT_EQ(picture.back().operation, 7);
  EXPECT_EQ(picture.back().what, "old name's removal lost, new name durable");
}

TEST(CrashSpace, RefusesAFileWithMoreContentsThanTheLimit) {
  TraceBuilder trace;
  trace.base("a", Value::copy_of("")).rank(0);
  for (int i = 0; i < 8; ++i) trace.write("a", i * 1536, letters('A', 1536));
  const auto space = CrashSpace::build(trace.trace(), {.contents_max = 1000});
  ASSERT_TRUE(space.failed_with(Code::invalid_input));
  EXPECT_THAT(space.error().message, HasSubstr("a may be left with more than 1000 contents"));
}

TEST(CrashSpace, RefusesATraceThatContradictsItself) {
  Trace trace;
  trace.programs.emplace_back();
  Operation operation;
  operation.op = FileOp::remove;
  operation.path = "nowhere/a";
  trace.operations.push_back(operation);
  const auto space = CrashSpace::build(trace, {});
  ASSERT_TRUE(space.failed_with(Code::invalid_input));
  EXPECT_THAT(space.error().message, HasSubstr("rank 0's remove of nowhere/a"));
}

}  // namespace
}  // namespace firedrill::crash
