// What the verbs that read a kept run answer when something else lies in its place: bad input, never an error of our
// own, and never a wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "harness/cli/kept_run.h"
#include "harness/cli/test_answer.h"
#include "harness/cli/test_folder.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class KeptRunInTrouble : public FolderTest, public testing::WithParamInterface<std::string> {
 protected:
  void expect_refused(const std::string& given, const std::string& why) const {
    const Answer answer = firedrill({GetParam(), given});
    EXPECT_EQ(answer.code, 1) << answer.err;
    EXPECT_THAT(answer.err, AllOf(HasSubstr(why), HasSubstr("hint: "), Not(HasSubstr("error of our own"))));
  }
  void keep() const {
    ASSERT_EQ(firedrill({"run", "scenarios/quickstart.yaml", "--out", at("run"), "--quiet"}).code, 0);
  }
};

TEST_P(KeptRunInTrouble, ANameThatIsTooLongIsBadInput) {
  expect_refused(std::string(5000, 'x'), "File name too long");
  fs::create_symlink("loop", at("loop"));
  expect_refused(at("loop"), "Too many levels of symbolic links");
}

TEST_P(KeptRunInTrouble, AHistoryThatIsADirectoryIsBadInput) {
  keep();
  fs::remove(at("run/history.jsonl"));
  fs::create_directory(at("run/history.jsonl"));
  expect_refused(at("run"), "history.jsonl is a directory, where a file must be");
}

TEST_P(KeptRunInTrouble, AFifoIsNotWaitedFor) {
  keep();
  fs::remove(at("run/history.jsonl"));
  ASSERT_EQ(::mkfifo(at("run/history.jsonl").c_str(), 0600), 0);
  expect_refused(at("run"), "history.jsonl is neither a file nor a directory");
  fs::remove(at("run/history.jsonl"));
  std::ofstream(at("run/history.jsonl")) << "{\"schema\":\"firedrill.history/1\"}\n";
  fs::remove(at("run/plan.json"));
  ASSERT_EQ(::mkfifo(at("run/plan.json").c_str(), 0600), 0);
  expect_refused(at("run"), "plan.json is neither a file nor a directory");
}

INSTANTIATE_TEST_SUITE_P(Of, KeptRunInTrouble, testing::Values("diagnose", "report", "replay"),
                         [](const auto& verb) { return verb.param; });

TEST_F(FolderTest, AFolderOfSeveralRunsHoldsNoHistory) {
  const Result<std::unique_ptr<KeptRun>> none = open_kept_run(folder_);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace firedrill
