// recovery.layout: restarts under another layout, as the report shows it, as --set changes it, and as replay honours
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/model/numerics.h"
#include "harness/cli/command_line.h"

namespace firedrill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

class RecoveryLayout : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  RecoveryLayout() {
    std::string name = (fs::temp_directory_path() / "firedrill-recovery-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directories(folder_ / "scenarios");
    std::ofstream(folder_ / "scenarios/text") << std::string(3000, 'a') << "bcd";
    std::ofstream(folder_ / "scenarios/job.yaml") << R"(schema: firedrill.job/1
model: {layers: 1, width: 8, heads: 2, sequence: 8, dropout: 0.1}
lanes: {dp: 4, tp: 2}
data: {corpus: text}
steps: 4
checkpoint: {every: 2}
)";
    std::ofstream(scenario()) << R"(schema: firedrill.scenario/1
job: job.yaml
layout: {dp: 4}
faults:
  - {kill: {}, at: {rank: 3, step: 3, phase: backward}}
recovery: {budget: 1, layout: {dp: 2, tp: 2, zero: 1}}
)";
  }
  ~RecoveryLayout() override { fs::remove_all(folder_); }

  std::string scenario() const { return (folder_ / "scenarios/fewer.yaml").string(); }
  static Answer firedrill(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_command_line(arguments, {.out = out, .err = err});
    return {code, out.str(), err.str()};
  }

  fs::path folder_;
};

TEST_F(RecoveryLayout, IsShownWithTheAttemptThatTakesIt) {
  const Answer answer = firedrill({"run", scenario(), "--json", "-"});
  ASSERT_EQ(answer.code, 0) << answer.out << answer.err;
  const auto run = nlohmann::json::parse(answer.out)["runs"][0];
  EXPECT_EQ(run["layout"], "dp=4");
  EXPECT_EQ(run["final_digest"], run["golden_digest"]);
  EXPECT_THAT(run.dump(), HasSubstr("from step 2 (2-1-1), as dp=2,tp=2,zero=1"));
}

TEST_F(RecoveryLayout, IsChangedBySetAndRefusedWhereItDoesNotFit) {
  const Answer other = firedrill({"run", scenario(), "--set", "recovery.layout.dp=1", "--json", "-"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("as tp=2,zero=1"));
  const Answer wrong = firedrill({"run", scenario(), "--set", "recovery.layout.dp=3"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("recovery.layout.dp"), HasSubstr("4 dp lanes"), HasSubstr("nearest")));
}

TEST_F(RecoveryLayout, IsHonouredByReplayAndCheckedThere) {
  const std::string out = (folder_ / "out").string();
  ASSERT_EQ(firedrill({"run", scenario(), "--out", out}).code, 0);
  const Answer again = firedrill({"replay", out, "--json", "-"});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("as dp=2,tp=2,zero=1"));
  std::stringstream text;
  text << std::ifstream(out + "/plan.json").rdbuf();
  auto plan = nlohmann::json::parse(text.str());
  plan["recovery"]["layout"]["pp"] = 2;
  const std::string file = (folder_ / "changed.json").string();
  std::ofstream(file) << plan.dump();
  const Answer refused = firedrill({"replay", file});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("recovery.layout.pp is 2"), HasSubstr("1 layers"), Not(HasSubstr("layout.dp"))));
}

}  // namespace
}  // namespace firedrill
