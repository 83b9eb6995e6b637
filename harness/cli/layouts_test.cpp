// firedrill layouts: the table, its JSON, and what it says of an engine whose bits depend on the layout.
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
using testing::ContainsRegex;
using testing::HasSubstr;

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

class LayoutsVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }
  LayoutsVerb() {
    std::string name = (fs::temp_directory_path() / "firedrill-layouts-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directories(folder_ / "scenarios" / "jobs");
    std::string text;  // another one in each sample, or it would not matter who draws which
    for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + (i * i / 3 + i) % 11);
    std::ofstream(folder_ / "scenarios/jobs/text") << text;
    std::ofstream(job()) << R"(schema: firedrill.job/1
model: {layers: 1, width: 8, heads: 2, sequence: 8, dropout: 0.1}
lanes: {dp: 4, tp: 2}
data: {corpus: text}
steps: 3
checkpoint: {every: 1}
)";
  }
  ~LayoutsVerb() override { fs::remove_all(folder_); }

  std::string job() const { return (folder_ / "scenarios/jobs/micro.yaml").string(); }
  Answer layouts(std::vector<std::string> more) const {
    more.insert(more.begin(), {"layouts", job()});
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_command_line(more, {.out = out, .err = err});
    return {code, out.str(), err.str()};
  }

  fs::path folder_;
};

TEST_F(LayoutsVerb, EveryLayoutAndEveryPairIsEqualToTheGolden) {
  const Answer answer = layouts({"--pairs", "all", "--json", "-"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const auto report = nlohmann::json::parse(answer.out);
  const auto count = report["layouts"].get<std::int64_t>();
  EXPECT_GE(count, 8);
  EXPECT_EQ(report["pairs"], count * (count - 1));
  EXPECT_EQ(report["differing_bits"], 0);
  EXPECT_TRUE(report["differences"].empty());
  EXPECT_EQ(report["verdict"], "pass");
}

TEST_F(LayoutsVerb, TheTableHasALineForEachLayout) {
  const Answer answer = layouts({"--pairs", "none"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out,
              AllOf(ContainsRegex("dp=2,tp=2 +4 ranks  equal"), ContainsRegex("dp=4,zero=3 +4 ranks  equal"),
                    HasSubstr("and 0 pairs, 0 of them are not equal to the golden; 0 bits differ")));
}

TEST_F(LayoutsVerb, ADifferenceIsExitTwoAndNamesTheFirstTensorAndStep) {
  // Where a rank has several of the lanes, but not all, their samples are dealt in another order.
  const Answer answer = layouts({"--pairs", "none", "--mutant", "sampler_by_rank", "--json", "-"});
  EXPECT_EQ(answer.code, 2);
  const auto report = nlohmann::json::parse(answer.out);
  EXPECT_GT(report["differing_bits"], 32);
  ASSERT_FALSE(report["differences"].empty());
  for (const auto& difference : report["differences"]) {
    EXPECT_THAT(difference["layout"].get<std::string>(), HasSubstr("dp=2"));
    EXPECT_EQ(difference["step"], 1);
    EXPECT_THAT(difference["tensor"].get<std::string>(), HasSubstr("embed."));
    EXPECT_EQ(difference["bits"].get<std::int64_t>() % 32, 0);
  }
  EXPECT_THAT(layouts({"--pairs", "none", "--mutant", "sampler_by_rank"}).out,
              ContainsRegex("\ndp=2 +2 ranks  DIFFERS in embed.[^ ]* after step 1"));
}

TEST_F(LayoutsVerb, APairThatIsResumedWronglyIsNamedWithBothLayouts) {
  const Answer answer = layouts({"--mutant", "moments_by_rank", "--ranks", "4"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.out, ContainsRegex("dp=4 -> dp=2 .*DIFFERS in optimizer.exp_avg"));
}

TEST_F(LayoutsVerb, FewerRanksMeanFewerLayouts) {
  const auto one = nlohmann::json::parse(layouts({"--ranks", "1", "--json", "-"}).out);
  EXPECT_EQ(one["exit_code"], 0);
  const auto two = nlohmann::json::parse(layouts({"--ranks", "2", "--json", "-"}).out);
  EXPECT_LT(one["layouts"], two["layouts"]);
}

TEST_F(LayoutsVerb, BadInputIsExitOne) {
  EXPECT_EQ(layouts({"--ranks", "0"}).code, 1);
  EXPECT_EQ(layouts({"--pairs", "some"}).code, 1);
  EXPECT_EQ(layouts({"--mutant", "nobody"}).code, 1);
  EXPECT_EQ(layouts({"--set", "job.lanes.tp=3"}).code, 1);
  fs::remove(job());
  const Answer gone = layouts({});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("micro.yaml"));
}

}  // namespace
}  // namespace firedrill
