#include "engine/base/value.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace firedrill {
namespace {

TEST(Values, AConfinedOneIsSharedSlicedAndReleasedLikeAnyOther) {
  Value outer = Value::copy_of("made before");
  Value kept;
  {
    const ConfinedValues scope;
    Value inner = Value::copy_of("made within");
    EXPECT_TRUE(inner.unique());
    {
      const Value copy = inner;
      const Value pack = Value::pack({inner, outer});
      EXPECT_FALSE(inner.unique());
      EXPECT_FALSE(outer.unique());
    }
    EXPECT_TRUE(inner.unique());
    EXPECT_TRUE(outer.unique());
    kept = inner.slice(5, 6);
    EXPECT_FALSE(inner.unique()) << "a slice keeps its buffer alive";
    EXPECT_EQ(kept.digest(), Value::copy_of("within").digest());
  }
  EXPECT_EQ(kept.text(), "within") << "behind its scope and its first holder";
  EXPECT_EQ(kept.key(), Value::copy_of("within").key()) << "where a Value was made is no part of it";
}

TEST(Values, ValuesMadeOutsideOfAScopeAreCountedRightByManyThreads) {
  const Value shared = Value::copy_of("shared");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&shared] {
        const ConfinedValues scope;  // which is about what is made in it only
        for (int n = 0; n < 20'000; ++n) const Value copy = shared;
      });
    }
  }
  EXPECT_TRUE(shared.unique());
}

}  // namespace
}  // namespace firedrill
