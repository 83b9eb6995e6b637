#include "engine/base/json_tree.h"

#include <gtest/gtest.h>

#include <string>

namespace firedrill {
namespace {

TEST(JsonTree, ReadsWholeNumbersTextsListsAndObjects) {
  const auto tree = JsonTree::of(R"({"a":[0,18446744073709551615,"x \u00e4",[]],"b":{"c":""},"d":{}})"
                                 "\n");
  ASSERT_TRUE(tree);
  const JsonValue a = tree->root().member("a").value();
  ASSERT_EQ(a.size(), 4U);
  auto at = a.begin();
  EXPECT_EQ((*at).whole(), 0U);
  EXPECT_EQ((*++at).whole(), ~std::uint64_t{0});
  EXPECT_EQ((*++at).text(), "x \xC3\xA4");
  EXPECT_TRUE((*++at).is_list());
  EXPECT_EQ((*at).size(), 0U);
  EXPECT_EQ(++at, a.end());
  EXPECT_TRUE(tree->root().member("b")->member("c")->is_text());
  EXPECT_TRUE(tree->root().member("d")->is_object());
  EXPECT_FALSE(tree->root().member("c"));
}

TEST(JsonTree, TheLastMemberOfANameCounts) {
  const auto tree = JsonTree::of(R"({"a":1,"b":{"a":7},"a":2})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->root().member("a")->whole(), 2U);
}

TEST(JsonTree, WhatIsAskedOfAValueOfAnotherKindIsEmpty) {
  const auto tree = JsonTree::of(R"(["a",1,-1,1.5,true,null])");
  ASSERT_TRUE(tree);
  const JsonValue list = tree->root();
  EXPECT_EQ(list.text(), "");
  EXPECT_EQ(list.whole(), 0U);
  EXPECT_FALSE(list.member("a"));
  int whole = 0;
  for (const JsonValue value : list) whole += value.is_whole() ? 1 : 0;
  EXPECT_EQ(whole, 1);
  const JsonValue text = *list.begin();
  EXPECT_EQ(text.size(), 0U);
  EXPECT_EQ(text.begin(), text.end());
  EXPECT_EQ(JsonValue().begin(), JsonValue().end());
  EXPECT_NE(JsonValue().begin(), list.begin());
  EXPECT_NE(list.begin(), JsonValue().begin());
  EXPECT_FALSE(JsonValue().is_object());
}

TEST(JsonTree, WhatIsNotJsonHasNone) {
  for (const std::string_view text : {"",
                                      "\n",
                                      "01",
                                      "[1",
                                      "[1,]",
                                      "[,1]",
                                      "[1]]",
                                      "\"a",
                                      "\"\t\"",
                                      "\"\xC3\"",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{1:2}",
                                      "{\"a\":1,}",
                                      "[1}",
                                      "{\"a\":1]",
                                      "1x",
                                      "1 2",
                                      "18446744073709551616",
                                      "1e999",
                                      "\xEF\xBB\xBF"
                                      "1"}) {
    EXPECT_FALSE(JsonTree::of(text)) << text;
  }
  EXPECT_FALSE(JsonTree::of(std::string(1'000'000, '['))) << "nor is it led into any depth";
}

}  // namespace
}  // namespace firedrill
