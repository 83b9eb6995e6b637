// firedrill fit, from its arguments to its exit status, on the shapes in scenarios/jobs/shapes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/test_answer.h"

namespace firedrill {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string shape(const std::string& name) { return FIREDRILL_SOURCE_DIR "/scenarios/jobs/shapes/" + name + ".yaml"; }
std::string nano_hybrid() { return FIREDRILL_SOURCE_DIR "/scenarios/jobs/nano-hybrid.yaml"; }

// The report, which must come with this exit status.
json fit(int code, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "fit");
  arguments.insert(arguments.end(), {"--json", "-"});
  const Answer answer = firedrill(arguments);
  EXPECT_EQ(answer.code, code) << answer.err;
  return json::parse(answer.out);
}

json row_of_stage(const json& report, int stage) {
  for (const json& row : report["per_rank"]) {
    if (row["stage"] == stage) return row;
  }
  return {};
}

// By hand, for dense-70b on dp 64 x tp 8 x pp 4 with ZeRO 1 and sequence parallelism: 2048 ranks, each with one dp
// lane, one tp lane and 20 of 80 layers; the first stage has the embedding besides. One lane of eight has of each layer
//   attention  qkv (8192 + 2 x 8 x 128) / 8 = 1280 rows of 8192, out 8192 x 1024        18,874,368
//   MLP        gate and up 2 x 28672 / 8 = 7168 rows of 8192, down 8192 x 3584           88,080,384
//   two norms  2 x (8192 + 8192)                                                             32,768
// together 106,987,520; of the embedding 128256 / 8 x 8192 = 131,334,144 token weights and 8192 x 8192 = 67,108,864
// positions. The first stage: 20 x 106,987,520 + 198,443,008 = 2,338,193,408 parameters.
//   parameters   x 2 bytes                                                            4,676,386,816
//   gradients    16 micro-batches add up in fp32: x 4                                 9,352,773,632
//   masters      x 4 / 64 dp ranks                                                      146,137,088
//   moments      x 8 / 64                                                               292,274,176
//   activations  one is 8192 / 8 tokens x 8192 x 2 bytes = 16,777,216; 40 segments keep theirs, with 32,773 bytes of
//                tokens and mask (4 bytes each, 8193 of them, and one), for 4 micro-batches under way; and a gradient
//                in and out: 4 x (671,088,640 + 32,773) + 33,554,432                  2,718,040,084
//   working      the MLP: 2 x 2 bytes x 8192 tokens x (8192 + 3 x 3584) + its 88,096,768 gradients x 2
//                                                                                       796,950,528
//   buffers      a bucket of 2^28, an activation of 8192 x 8192 x 2, one of 16,777,216  419,430,400
//   reserve      a tenth of 80 GB                                                     8,000,000,000
//   total                                                                            26,401,992,724: fits in 80 GB
TEST(Fit, Plans70BillionDenseParametersAsByHand) {
  const std::string layout = "dp=64,tp=8,pp=4,zero=1,sequence_parallel,bucket=268435456";
  const json report = fit(0, {shape("dense-70b"), "--gpu-memory", "80GB", "--layout", layout});
  EXPECT_EQ(report["schema"], "firedrill.report/1");
  EXPECT_EQ(report["verb"], "fit");
  EXPECT_EQ(report["fits"], true);
  // 80 layers of 855,670,784, two of 1,050,673,152 vocabulary weights, 67,108,864 positions, 16,384 of the last norm.
  EXPECT_EQ(report["parameters"], 70'622'134'272);
  EXPECT_EQ(report["global_batch"], 1024);
  const json first = row_of_stage(report, 0);
  EXPECT_EQ(first["ranks"], 512);
  EXPECT_EQ(first["in_flight"], 4);
  EXPECT_EQ(first["parameters"], 4'676'386'816);
  EXPECT_EQ(first["gradients"], 9'352'773'632);
  EXPECT_EQ(first["masters"], 146'137'088);
  EXPECT_EQ(first["moments"], 292'274'176);
  EXPECT_EQ(first["persistent"], 14'467'571'712);
  EXPECT_EQ(first["activations"], 2'718'040'084);
  EXPECT_EQ(first["working"], 796'950'528);
  EXPECT_EQ(first["buffers"], 419'430'400);
  EXPECT_EQ(first["reserve"], 8'000'000'000);
  EXPECT_EQ(first["total"], 26'401'992'724);
}

// The same without pipeline stages: 80 x 106,987,520 + 198,443,008 + 131,334,144 + 16,384 = 8,888,795,136 parameters a
// rank, and 2 + 4 + 4 + 8 bytes of each are 160 GB.
TEST(Fit, SaysThat70BillionParametersOnEightWaysDoNotFitAndWhatDoes) {
  const json report = fit(2, {shape("dense-70b"), "--layout", "dp=64,tp=8,sequence_parallel"});
  EXPECT_EQ(report["fits"], false);
  EXPECT_EQ(row_of_stage(report, 0)["persistent"], 18 * 8'888'795'136);
  ASSERT_FALSE(report["layouts"].empty());
  for (const json& choice : report["layouts"]) {
    EXPECT_EQ(choice["ranks"], 512);
    EXPECT_GE(choice["margin"], 0);
  }
}

// By hand, for moe-671b in the layout of the report that it is from: dp 128 x pp 16, experts over 64 ranks, ZeRO 1; 4
// of 58 layers are on the second stage, 4 of 256 experts of each on a rank. A layer has there
//   attention  qkv 3 x 7168 x 7168, out 7168 x 7168                                     205,520,896
//   two norms  2 x (7168 + 7168)                                                             28,672
//   router     256 x 7168                                                                 1,835,008
//   4 experts  gate and up 4096 x 7168, down 7168 x 2048: 44,040,192 each               176,160,768
// together 383,545,344, and 1,534,181,376 in 4 layers.
//   parameters   x 2 bytes                                                            3,068,362,752
//   gradients    120 micro-batches add up in fp32: x 4                                6,136,725,504
//   sharded      of attention, norms and router a 128th in whole grains, 1,605,632 + 2 x 128 + 14,336 = 1,620,224 a
//                layer (the norms' 224 grains give some ranks one, the worst two); of experts, which two blocks of 64
//                dp ranks hold, a half: 4 x (1,620,224 + 88,080,384) = 358,802,432
//   masters      x 4                                                                  1,435,209,728
//   moments      x 8                                                                  2,870,419,456
//   activations  one is 4096 x 7168 x 2 bytes = 58,720,256; 8 segments keep theirs, with 16,389 bytes of tokens and
//                mask, for 15 micro-batches under way; two gradients in hand: 15 x (469,762,048 + 16,389) +
//                117,440,512                                                          7,164,117,067
//   working      experts: 1.25 x 8 x 4096 = 40,960 rows to send and to take, 160 for each expert and lane:
//                2 x 2 x (2 x 40,960 x 7168 + 160 x 64 x 3 x 2048), and the gradient of a quarter of the MLP's
//                178,010,112 x 2                                                      2,689,473,536
//   buffers      a bucket of 2^28 and an activation                                     327,155,712
//   reserve                                                                           8,000,000,000
//   total                                                                            31,691,463,755: fits in 80 GB
// That is with one accumulator a rank. With one for each lane, so that no layout changes a bit, an expert has 64 of
// them: 4 x (207,384,576 + 64 x 176,160,768) x 4 bytes = 183,706,779,648 of gradients do not fit.
TEST(Fit, PlansALargeMixtureOfExpertsAsByHand) {
  const std::string layout = "dp=128,pp=16,ep=64,zero=1,bucket=268435456";
  const json one = fit(0, {shape("moe-671b"), "--layout", layout, "--one-accumulator"});
  EXPECT_EQ(one["fits"], true);
  const json* worst = nullptr;
  for (const json& row : one["per_rank"]) {
    if (row["stage"] == 1 && (worst == nullptr || row["total"] > (*worst)["total"])) worst = &row;
  }
  ASSERT_NE(worst, nullptr);
  EXPECT_EQ((*worst)["in_flight"], 15);
  EXPECT_EQ((*worst)["parameters"], 3'068'362'752);
  EXPECT_EQ((*worst)["gradients"], 6'136'725'504);
  EXPECT_EQ((*worst)["masters"], 1'435'209'728);
  EXPECT_EQ((*worst)["moments"], 2'870'419'456);
  EXPECT_EQ((*worst)["activations"], 7'164'117'067);
  EXPECT_EQ((*worst)["working"], 2'689'473'536);
  EXPECT_EQ((*worst)["buffers"], 327'155'712);
  EXPECT_EQ((*worst)["total"], 31'691'463'755);
  const json by_lane = fit(2, {shape("moe-671b"), "--layout", layout});
  EXPECT_EQ(by_lane["fits"], false);
  EXPECT_EQ(row_of_stage(by_lane, 1)["gradients"], 183'706'779'648);
}

TEST(Fit, RanksTheLayoutsThatFitAndSaysWhy) {
  const Answer answer = firedrill({"fit", shape("dense-70b"), "--ranks", "512"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("  1. dp="), HasSubstr("bubble"), HasSubstr("spare"), HasSubstr("tp "),
                                HasSubstr("inside a node"), HasSubstr("planned only: model.vocabulary is 128256")));
  const json report = fit(0, {shape("dense-70b"), "--ranks", "512"});
  double last = 0;
  for (const json& choice : report["layouts"]) {
    EXPECT_LE(last, choice["step_seconds"]);
    last = choice["step_seconds"];
    EXPECT_LE(choice["total"], 80'000'000'000);
  }
}

TEST(Fit, ShowsWhichGroupCrossesNodesAndWarns) {
  const Answer answer =
      firedrill({"fit", nano_hybrid(), "--layout", "dp=2,tp=2,pp=4", "--set", "job.cluster.ranks_per_node=1"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("placement: tp: 2 ranks, across 2 nodes"),
                                HasSubstr("warning: layout.tp is 2 with 1 ranks to a node"), HasSubstr("fits")));
  const Answer few = firedrill({"fit", nano_hybrid(), "--layout", "dp=4,pp=4"});
  EXPECT_THAT(few.out, AllOf(HasSubstr("warning: layout.pp is 4 and a rank has 2 micro-batches"), HasSubstr("60 %")));
}

TEST(Fit, ShowsTheGlobalBatchByLaneAndByRank) {
  const Answer answer = firedrill({"fit", nano_hybrid(), "--layout", "dp=2,zero=2"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("global batch 8 samples"), HasSubstr("per lane 1 x 2 accumulation x 4 dp"),
                                HasSubstr("per rank 4 micro-batches of 1"), HasSubstr("accumulators stay whole"),
                                HasSubstr("owns 2 dp lanes")));
}

TEST(Fit, RefusesWhatItCannotRead) {
  const auto refused = [](const std::vector<std::string>& arguments, const testing::Matcher<std::string>& why) {
    std::vector<std::string> all = {"fit", nano_hybrid()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Answer answer = firedrill(all);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.err, why);
  };
  refused({"--gpu-memory", "80"}, HasSubstr("--gpu-memory is `80`: give a size above 0 with its unit"));
  refused({"--gpu-memory", "0GB"}, HasSubstr("--gpu-memory"));
  refused({"--layout", "dp=3"}, AllOf(HasSubstr("layout.dp is 3 and does not divide the job's 4 dp lanes"),
                                      HasSubstr("the nearest layouts that fit: dp=4 or dp=2")));
  refused({"--layout", "pp=5"}, AllOf(HasSubstr("5 stages for 4 layers"), HasSubstr("that fit: pp=4 or")));
  refused({"--layout", "dp=two"}, HasSubstr("layout.dp must be a whole number"));
  refused({"--layout", "dq=2"}, HasSubstr("dq"));
  refused({"--layout", "dp=2,dp=4"}, HasSubstr("`dp` is given twice"));
  refused({"--ranks", "7"}, AllOf(HasSubstr("--ranks 7: no layout of this job has so many"), HasSubstr("6 and 8")));
  refused({"--layout", "dp=2", "--ranks", "4"}, HasSubstr("has 2 ranks"));
  refused({"--mutant", "protocol_latest_file"}, HasSubstr("--mutant"));
}

TEST(Fit, ShapesThatOnlyItCanPlanAreRefusedByWhatRuns) {
  for (const std::string name : {"dense-8b", "dense-70b", "dense-405b", "moe-141b", "moe-671b"}) {
    EXPECT_EQ(firedrill({"fit", shape(name), "--layout", "dp=1", "--quiet"}).code, 2) << name;
    const Answer golden = firedrill({"golden", "record", shape(name)});
    EXPECT_EQ(golden.code, 1) << name;
    EXPECT_THAT(golden.err, AllOf(HasSubstr("model.vocabulary is"), HasSubstr("only bytes (256)"))) << name;
  }
}

}  // namespace
}  // namespace firedrill
