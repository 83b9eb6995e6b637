#include "engine/base/json_tree.h"

#include <gtest/gtest.h>

#include <string>

namespace firedrill {
namespace {

TEST(JsonTree, ReadsWholeNumbersTextsListsAndObjects) {
  const auto tree = JsonTree::of_plain("{\"a\":[0,18,\"x y\",[]],\"b\":{\"c\":\"\"},\"d\":{}}\n");
  ASSERT_TRUE(tree);
  const JsonValue a = tree->root().member("a").value();
  ASSERT_EQ(a.size(), 4U);
  auto at = a.begin();
  EXPECT_EQ((*at).whole(), 0U);
  EXPECT_EQ((*++at).whole(), 18U);
  EXPECT_EQ((*++at).text(), "x y");
  EXPECT_TRUE((*++at).is_list());
  EXPECT_EQ((*at).size(), 0U);
  EXPECT_EQ(++at, a.end());
  EXPECT_TRUE(tree->root().member("b")->member("c")->is_text());
  EXPECT_TRUE(tree->root().member("d")->is_object());
  EXPECT_FALSE(tree->root().member("c"));
}

TEST(JsonTree, TheLastMemberOfANameCounts) {
  const auto tree = JsonTree::of_plain(R"({"a":1,"b":{"a":7},"a":2})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->root().member("a")->whole(), 2U);
}

TEST(JsonTree, WhatIsAskedOfAValueOfAnotherKindIsEmpty) {
  const auto tree = JsonTree::of_plain(R"(["a",1])");
  ASSERT_TRUE(tree);
  const JsonValue list = tree->root();
  EXPECT_EQ(list.text(), "");
  EXPECT_EQ(list.whole(), 0U);
  EXPECT_FALSE(list.member("a"));
  const JsonValue text = *list.begin();
  EXPECT_EQ(text.size(), 0U);
  EXPECT_EQ(text.begin(), text.end());
  EXPECT_EQ(JsonValue().begin(), JsonValue().end());
}

TEST(JsonTree, LeavesToALibraryWhateverIsNotPlain) {
  for (const std::string_view text : {"",
                                      "\n",
                                      "1 ",
                                      " 1",
                                      "1\n\n",
                                      "[1, 2]",
                                      "01",
                                      "-1",
                                      "1.5",
                                      "1e3",
                                      "12345678901234567890",
                                      "true",
                                      "null",
                                      "[1",
                                      "[1,]",
                                      "[,1]",
                                      "[1]]",
                                      "\"a",
                                      "\"\\n\"",
                                      "\"\t\"",
                                      "\"\xC3\xA4\"",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{1:2}",
                                      "{\"a\":1,}",
                                      "[1}",
                                      "{\"a\":1]",
                                      "1x"}) {
    EXPECT_FALSE(JsonTree::of_plain(text)) << text;
  }
}

TEST(JsonTree, IsNotLedIntoAnyDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(JsonTree::of_plain(nested(JsonTree::depth_max)));
  EXPECT_FALSE(JsonTree::of_plain(nested(JsonTree::depth_max + 1)));
  EXPECT_FALSE(JsonTree::of_plain(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace firedrill
