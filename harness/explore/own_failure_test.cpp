// Failed checks while ranks recover: one of the harness is no answer about the code under test, one of that code is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explore/test_subject.h"

namespace firedrill {
namespace {

using testing::HasSubstr;

// Fails a check of this place as soon as a rank lists it or looks for a name in it.
class BrokenContent final : public DiskContent {
 public:
  explicit BrokenContent(std::string place) : place_(std::move(place)) {}
  Node child(Node /*directory*/, std::string_view /*name*/) override { fail(); }
  void list(Node /*directory*/, std::vector<std::string>& /*names*/) override { fail(); }
  FileKind kind(Node /*node*/) override { return FileKind::directory; }
  std::int64_t size(Node /*file*/) override { fail(); }
  Value read(Node /*file*/, std::int64_t /*offset*/, std::int64_t /*size*/) override { fail(); }

 private:
  [[noreturn]] void fail() const { fail_check(place_.c_str(), 7, "found", "no value left"); }
  std::string place_;
};

TEST(OwnFailure, AFailedCheckOfTheHarnessOrTheFaultsIsNoAnswer) {
  const auto subject = subject_of("one_publish", {"layout.dp=2"});
  RestoreCheck check(subject->to_check(2));
  for (const std::string place : {"harness/explore/lazy_engine.cpp", "faults/persistence/partial.cpp"}) {
    BrokenContent content(place);
    EXPECT_THROW((void)check.check(content), CheckFailure) << place;
  }
  FixedContent empty;
  EXPECT_TRUE(check.check(empty).fresh) << check.check(empty).trouble;
}

TEST(OwnFailure, AFailedCheckOfTheEngineOrOfAMutantIsTheAnswer) {
  const auto subject = subject_of("one_publish", {"layout.dp=2"});
  RestoreCheck check(subject->to_check(2));
  for (const std::string place : {"engine/ckpt/find.cpp", "harness/mutants/steps.cpp"}) {
    BrokenContent content(place);
    const CheckAnswer& answer = check.check(content);
    EXPECT_FALSE(answer.restored || answer.fresh);
    EXPECT_THAT(answer.trouble, HasSubstr(place));
  }
}

}  // namespace
}  // namespace firedrill
