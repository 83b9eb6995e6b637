#include "harness/report/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/report.h"

namespace firedrill {
namespace {

using testing::HasSubstr;
using testing::Not;

Accounting an_account() {
  const Spread time{.p50 = 1'500, .p95 = 2'000'000, .max = 3'000'000'000, .max_rank = 2, .max_step = 7, .samples = 48};
  const Spread waiting{.p50 = 1, .p95 = 2, .max = 900, .max_rank = 0, .max_step = 1, .samples = 48};
  return {.phases = {{.what = "backward", .time = time, .waiting = waiting}},
          .groups = {{.what = "dp", .time = time, .waiting = waiting}},
          .exchanges = {{.group = "dp",
                         .operation = "all_reduce",
                         .calls = 48,
                         .bytes = 4096,
                         .bytes_of_rank = time,
                         .waiting = waiting}},
          .ranks = {{.rank = 0, .time = 200, .idle = 50}, {.rank = 1, .time = 200, .idle = 150}},
          .slowest_rank = 0,
          .memory = MemoryLine{.high_water = {.p50 = 1000, .max = 2000, .max_rank = 3, .max_step = 1},
                               .persistent = {.max = 500}},
          .bubble = Bubble{.p50 = 0.25, .p95 = 0.5, .max = 0.75, .samples = 12}};
}

TEST(AccountingReport, TheTextNamesTheRankOfEachMaximum) {
  const std::string text = to_text(an_account());
  EXPECT_THAT(text, HasSubstr("backward         1.5 us    2.00 ms     3.00 s  rank 2, step 7; waiting 0.9 us at most"));
  EXPECT_THAT(text, HasSubstr("4096 bytes in 48 calls"));
  EXPECT_THAT(text, HasSubstr("rank 1 75.0 %, at most; rank 0 25.0 %, at least; slowest: rank 0"));
  EXPECT_THAT(text, HasSubstr("1000 bytes at p50, 2000 at most (rank 3, step 1); of them 500"));
  EXPECT_THAT(text, HasSubstr("bubble         25.0 % of a pipeline's step at p50, 50.0 % at p95, 75.0 % at most"));
}

TEST(AccountingReport, TheJsonHasEveryFigure) {
  const auto json = json_of(an_account());
  EXPECT_EQ(json["phases"][0]["phase"], "backward");
  EXPECT_EQ(json["phases"][0]["time"]["max_rank"], 2);
  EXPECT_EQ(json["groups"][0]["waiting"]["max"], 900);
  EXPECT_EQ(json["exchanges"][0]["bytes"], 4096);
  EXPECT_EQ(json["ranks"][1]["idle_share"], 0.75);
  EXPECT_EQ(json["slowest_rank"], 0);
  EXPECT_EQ(json["bubble"]["samples"], 12);
  EXPECT_EQ(json["memory"]["high_water"]["max_rank"], 3);
}

TEST(AccountingReport, ARunThatWasNotAskedForItHasNone) {
  Report report;
  report.runs.resize(1);
  EXPECT_THAT(to_json(report), Not(HasSubstr("accounting")));
  EXPECT_THAT(to_text(report), Not(HasSubstr("time of a rank")));
  report.runs[0].accounting = an_account();
  EXPECT_THAT(to_json(report), HasSubstr("\"accounting\""));
  EXPECT_THAT(to_text(report), HasSubstr("time of a rank"));
}

}  // namespace
}  // namespace firedrill
