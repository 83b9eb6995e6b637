#include "engine/rocks/record_store.h"

#include <gtest/gtest.h>

#include "engine/sim/disk.h"

namespace firedrill {
namespace {

TEST(RecordStore, WhatWasWrittenIsReadByTheWriterAndByReaders) {
  sim::Disk disk;
  const auto files = disk.files({});
  ASSERT_TRUE(files->make_directory("catalog"));
  auto store = RecordStore::open(*files, "catalog");
  ASSERT_TRUE(store) << describe(store.error());
  ASSERT_TRUE(
      (*store)->write({{.name = "b", .value = Value::copy_of("2")}, {.name = "a/1", .value = Value::copy_of("1")}}));
  ASSERT_TRUE((*store)->write({{.name = "b"}, {.name = "c", .value = Value::copy_of("3")}}));
  auto loaded = load_store(*files, "catalog");
  ASSERT_TRUE(loaded);
  for (const Result<Value>& records : {(*store)->records(), decode_store(*loaded)}) {
    ASSERT_TRUE(records) << describe(records.error());
    const RecordView view(*records);
    ASSERT_EQ(view.size(), 2U);
    EXPECT_EQ(view.name(0), "a/1");
    EXPECT_EQ(view.find("c")->text(), "3");
    EXPECT_FALSE(view.find("b").has_value());
  }
}

}  // namespace
}  // namespace firedrill
