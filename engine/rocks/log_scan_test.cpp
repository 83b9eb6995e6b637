#include "engine/rocks/log_scan.h"

#include <gtest/gtest.h>

namespace firedrill {
namespace {

TEST(LogScan, TheChecksumIsThatOfItsDefinition) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(LogScan, AnEmptyLogIsWhole) {
  const auto scan = scan_log("", LogKind::batches);
  ASSERT_TRUE(scan);
  EXPECT_FALSE(scan->torn);
  EXPECT_FALSE(scan->has_batches);
}

TEST(LogScan, ZerosAloneAreAnUnfinishedWriteInALogAndDamageInADescription) {
  const std::string zeros(700, '\0');
  const auto scan = scan_log(zeros, LogKind::batches);
  ASSERT_TRUE(scan);
  EXPECT_TRUE(scan->torn);
  EXPECT_EQ(scan->clean, 0);
  EXPECT_FALSE(scan_log(zeros, LogKind::edits));
}

TEST(LogScan, BytesThatAreNoRecordAreDamage) { EXPECT_FALSE(scan_log(std::string(700, 'x'), LogKind::batches)); }

}  // namespace
}  // namespace firedrill
