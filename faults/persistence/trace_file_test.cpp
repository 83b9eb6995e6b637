#include "faults/persistence/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "faults/persistence/test_trace.h"

namespace firedrill::crash {
namespace {

using testing::HasSubstr;

Trace every_kind() {
  TraceBuilder trace;
  trace.base("d").base("d/old", pattern(700, 1)).rank(0, 0);
  trace.create("d/a");
  const OperationId write = trace.write("d/a", 512, pattern(700, 1));
  trace.failing(Code::no_space).write("d/a", 0, pattern(10, 2));
  trace.failing().sync("d/a");
  trace.close("d/a");
  trace.rank(1, 1, 2).after(write);
  trace.rename("d/a", "d/b");
  trace.make_directory("e");
  trace.sync_directory("");
  trace.remove("d/old");
  trace.commit(4);
  trace.acknowledge(4);
  trace.rank(-1, -1, 2).node_died(0, {{write, false}});
  return trace.trace();
}

std::string text_of(const Trace& trace) {
  std::ostringstream out;
  write_trace(out, trace);
  return out.str();
}

Result<Trace> read_text(const std::string& text) {
  std::istringstream in(text);
  return read_trace(in);
}

TEST(TraceFile, ReadsBackWhatItWrote) {
  const std::string text = text_of(every_kind());
  const Result<Trace> trace = read_text(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(text_of(*trace), text);
  EXPECT_EQ(trace->base.size(), 2);
  EXPECT_EQ(trace->programs, every_kind().programs);
  ASSERT_EQ(trace->operations.size(), every_kind().operations.size());
  EXPECT_TRUE(trace->operations[1].bytes.same_as(pattern(700, 1)));
  EXPECT_EQ(trace->operations[2].error, Code::no_space);
  EXPECT_EQ(trace->operations[5].after, std::vector<OperationId>{1});
  EXPECT_EQ(trace->operations.back().lost, (std::vector<LostItem>{{1, false}}));
}

TEST(TraceFile, StoresEqualBytesOnce) {
  const std::string text = text_of(every_kind());
  std::size_t stored = 0;
  for (std::size_t at = text.find("\"hex\""); at != std::string::npos; at = text.find("\"hex\"", at + 1)) ++stored;
  EXPECT_EQ(stored, 2);  // of three writes and one file of the base
}

TEST(TraceFile, RefusesAnotherSchema) {
  const Result<Trace> trace = read_text("{\"schema\": \"firedrill.history/1\"}\n");
  ASSERT_TRUE(trace.failed_with(Code::mismatch));
  EXPECT_THAT(trace.error().message, HasSubstr("firedrill.history/1"));
}

TEST(TraceFile, RefusesDamageWithTheLine) {
  const std::string text = text_of(every_kind());
  EXPECT_TRUE(read_text("").failed_with(Code::corrupted));
  EXPECT_TRUE(read_text(text.substr(0, text.size() / 2)).failed_with(Code::corrupted));
  std::string flipped = text;
  char& digit = flipped[flipped.find("\"hex\":\"") + 8];
  digit = digit == '0' ? '1' : '0';
  const Result<Trace> trace = read_text(flipped);
  ASSERT_TRUE(trace.failed_with(Code::corrupted));
  EXPECT_THAT(trace.error().message, HasSubstr("line 3 of the trace: the bytes are not those of"));
}

TEST(TraceFile, RefusesAnEdgeToALaterOperation) {
  std::string text = text_of(every_kind());
  const std::string edge = "\"after\":[1]";
  text.replace(text.find(edge), edge.size(), "\"after\":[9]");
  EXPECT_TRUE(read_text(text).failed_with(Code::corrupted));
}

}  // namespace
}  // namespace firedrill::crash
