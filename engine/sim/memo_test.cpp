#include "engine/sim/memo.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/base/rng.h"

namespace firedrill::sim {
namespace {

int runs = 0;  // of any test kernel; reset by each test

Result<Value> concatenate(std::span<const std::byte> scalars, std::span<Value> inputs) {
  ++runs;
  std::string text = std::to_string(scalars_as<std::int64_t>(scalars));
  for (Value& input : inputs) {
    text += '|';
    text += input ? input.text() : "-";
    input = Value();  // consumed
  }
  return Value::copy_of(text);
}
Result<Value> consume_in_place(std::span<const std::byte>, std::span<Value> inputs) {
  ++runs;
  MutableValue buffer(std::move(inputs[0]));
  for (std::byte& byte : buffer.bytes()) byte ^= std::byte{1};
  return std::move(buffer).freeze();
}
Result<Value> fail(std::span<const std::byte>, std::span<Value>) {
  ++runs;
  return Error{.code = Code::corrupted, .message = "no"};
}
Result<Value> count_up(std::span<const std::byte>, std::span<Value>) { return Value::copy_of(std::to_string(++runs)); }

constexpr Kernel concatenate_kernel = make_kernel("test.concatenate", KernelKind::other, concatenate);
constexpr Kernel consume_kernel = make_kernel("test.consume", KernelKind::other, consume_in_place);
constexpr Kernel fail_kernel = make_kernel("test.fail", KernelKind::other, fail);
constexpr Kernel impure_kernel = make_kernel("test.count_up", KernelKind::other, count_up);

class MemoTest : public testing::Test {
 protected:
  MemoTest() { runs = 0; }
  std::string text(std::int64_t scalar, std::initializer_list<Value> inputs) {
    return std::string(run_kernel(compute_, concatenate_kernel, scalar, inputs)->text());
  }
  DirectCompute direct_;
  MemoTable table_{{.recheck_every = 0}};
  MemoCompute compute_{direct_, table_};
};

TEST_F(MemoTest, TheSameInputsAreComputedOnce) {
  EXPECT_EQ(text(1, {Value::copy_of("a"), Value(), Value::copy_of("b")}), "1|a|-|b");
  EXPECT_EQ(text(1, {Value::copy_of("a"), Value(), Value::copy_of("b")}), "1|a|-|b");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(table_.counters().hits, 1U);
  EXPECT_EQ(table_.counters().misses, 1U);
}

TEST_F(MemoTest, EveryPartOfTheCallCounts) {
  EXPECT_EQ(text(1, {Value::copy_of("a"), Value::copy_of("b")}), "1|a|b");
  EXPECT_EQ(text(2, {Value::copy_of("a"), Value::copy_of("b")}), "2|a|b");
  EXPECT_EQ(text(1, {Value::copy_of("b"), Value::copy_of("a")}), "1|b|a");
  EXPECT_EQ(text(1, {Value::copy_of("a"), Value::copy_of("b"), Value()}), "1|a|b|-");
  EXPECT_EQ(text(1, {Value(), Value::copy_of("a"), Value::copy_of("b")}), "1|-|a|b");
  const Value bytes = Value::copy_of("aaaabbbb");
  EXPECT_NE(memo_key(concatenate_kernel, {}, std::vector<Value>{bytes}),
            memo_key(concatenate_kernel, {}, std::vector<Value>{bytes.reinterpret(DType::f32, Shape{2})}));
  EXPECT_NE(memo_key(concatenate_kernel, {}, {}), memo_key(consume_kernel, {}, {}));
  EXPECT_EQ(table_.counters().hits, 0U);
}

TEST_F(MemoTest, AKernelThatConsumesItsInputKeepsTheMemoRight) {
  for (int i = 0; i < 3; ++i) {
    Value input = Value::copy_of("aaa");
    (void)input.digest();
    auto result = compute_.run(consume_kernel, {}, std::span(&input, 1));
    ASSERT_TRUE(result);
    EXPECT_EQ(result->text(), "```");
    EXPECT_EQ(result->digest(), result->digest_recomputed());
    // What the caller gets is shared with the memo, so the next update copies.
    Value second = std::move(*result);
    auto back = compute_.run(consume_kernel, {}, std::span(&second, 1));
    EXPECT_EQ(back->text(), "aaa");
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(MemoTest, ErrorsAreNotKept) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(compute_.run(fail_kernel, {}, {}).failed_with(Code::corrupted));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(table_.entries(), 0U);
}

TEST_F(MemoTest, TheRecheckFindsAKernelThatIsNotPure) {
  MemoTable table({.recheck_every = 4});
  MemoCompute compute(direct_, table);
  const auto call = [&] { return std::string(compute.run(impure_kernel, {}, {})->text()); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(call(), "1");
  try {
    (void)call();
    FAIL() << "the fourth hit was not checked";
  } catch (const CheckFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("test.count_up"), std::string::npos);
  }
  EXPECT_EQ(table.counters().rechecks, 1U);
}

TEST_F(MemoTest, TheRecheckLetsPureKernelsPass) {
  MemoTable table({.recheck_every = 1});
  MemoCompute compute(direct_, table);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(run_kernel(compute, concatenate_kernel, std::int64_t{1}, {Value::copy_of("a")}));
  }
  EXPECT_EQ(table.counters().rechecks, 4U);
}

TEST_F(MemoTest, TheTableStaysInItsBytesAndKeepsWhatIsUsed) {
  MemoTable table({.bytes_max = 100'000, .recheck_every = 0});
  MemoCompute compute(direct_, table);
  const std::string large(1000, 'x');
  for (std::int64_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(run_kernel(compute, concatenate_kernel, i, {Value::copy_of(large)}));
    ASSERT_TRUE(run_kernel(compute, concatenate_kernel, std::int64_t{-1}, {Value::copy_of("always")}));
    ASSERT_LE(table.bytes(), 2 * (100'000 + 2'000));
  }
  EXPECT_EQ(runs, 2001) << "the one in use was never computed again";
  EXPECT_GT(table.entries(), 50U);
}

// Callers that go round and round are told ahead; some leave their round, and generations come and go.
TEST_F(MemoTest, WhoeverIsToldAheadFindsWhatIsKeptUnderTheKey) {
  MemoTable table({.bytes_max = 20'000, .recheck_every = 0});
  std::vector<MemoCompute> callers;
  for (int caller = 0; caller < 10; ++caller) callers.emplace_back(direct_, table, caller);
  Rng rng(1);
  for (std::int64_t i = 0; i < 5'000; ++i) {
    const auto caller = static_cast<std::int64_t>(i % 10);
    const std::int64_t scalar = rng.below(8) == 0 ? static_cast<std::int64_t>(rng.below(200)) : (i / 10 + caller) % 40;
    const auto result = run_kernel(callers[static_cast<std::size_t>(caller)], concatenate_kernel, scalar,
                                   {Value::copy_of(std::to_string(scalar % 7))});
    ASSERT_TRUE(result);
    ASSERT_EQ(result->text(), std::to_string(scalar) + "|" + std::to_string(scalar % 7));
  }
  EXPECT_GT(table.counters().hits, 2'500U);
  EXPECT_GT(table.counters().misses, 200U) << "the old generation went";
}

TEST_F(MemoTest, NoTwoOfManyLikeCallsHaveTheSameKey) {
  std::set<Digest> keys;
  std::size_t calls = 0;
  const auto add = [&](std::span<const std::byte> scalars, const std::vector<Value>& inputs) {
    keys.insert(memo_key(concatenate_kernel, scalars, inputs));
    ++calls;
  };
  const Value zero;  // the key of an input that is not given is 0
  std::vector<Value> none;
  for (int count = 0; count < 8; ++count, none.push_back(zero)) {
    for (std::uint64_t first = 0; first < 32; ++first) {
      for (std::uint64_t second = 0; second < 32; ++second) {
        const std::uint64_t scalars[] = {first, second << 58, first << 32 | second};
        add(std::as_bytes(std::span(scalars)), none);
      }
    }
    for (std::size_t size = 0; size < 40; ++size) add(std::vector<std::byte>(size, std::byte{1}), none);
  }
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < 32; ++k) add({}, {Value::copy_of(std::to_string(i)), Value::copy_of(std::to_string(k))});
  }
  EXPECT_EQ(keys.size(), calls);
}

TEST_F(MemoTest, SharedBytesCountOnce) {
  MemoTable table;
  const Value large = Value::copy_of(std::string(10'000, 'x'));
  table.keep({1, 1}, large);
  table.keep({2, 2}, large);
  table.keep({3, 3}, Value::pack({large, large}));
  EXPECT_GE(table.bytes(), 10'000U);
  EXPECT_LT(table.bytes(), 11'000U);
}

}  // namespace
}  // namespace firedrill::sim
