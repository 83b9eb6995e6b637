#include "harness/report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "harness/report/protobuf.h"
#include "harness/report/test_history.h"

namespace firedrill {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

std::uint64_t take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.at(0));
    text.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    Field field{.number = static_cast<std::uint32_t>(key >> 3)};
    field.value = take_varint(message);
    if ((key & 7) == 2) {
      field.bytes = message.substr(0, field.value);
      message.remove_prefix(field.value);
    }
    fields.push_back(field);
  }
  return fields;
}

Field field_of(std::string_view message, std::uint32_t number) {
  for (const Field& field : fields_of(message)) {
    if (field.number == number) return field;
  }
  return {};
}

// The numbers are those of perfetto's trace_packet.proto, track_descriptor.proto and track_event.proto.
struct Decoded {
  explicit Decoded(const std::string& trace) {
    for (const Field& packet : fields_of(trace)) {
      if (const Field track = field_of(packet.bytes, 60); track.number != 0) {
        tracks[field_of(track.bytes, 1).value] = std::string(field_of(track.bytes, 2).bytes);
      }
      const Field event = field_of(packet.bytes, 11);
      if (event.number == 0) continue;
      const std::string track = tracks[field_of(event.bytes, 11).value];
      const std::string name(field_of(event.bytes, 23).bytes);
      const std::uint64_t time = field_of(packet.bytes, 8).value;
      switch (field_of(event.bytes, 9).value) {
        case 1: open[track] = {name, time}; break;
        case 2: slices[track].emplace_back(open[track].first, time - open[track].second); break;
        case 3: instants[track].push_back(name); break;
        default: break;
      }
    }
  }

  std::map<std::uint64_t, std::string> tracks;
  std::map<std::string, std::pair<std::string, std::uint64_t>> open;
  std::map<std::string, std::vector<std::pair<std::string, std::uint64_t>>> slices;
  std::map<std::string, std::vector<std::string>> instants;
};

TEST(Protobuf, WritesWhatItsDocumentationShows) {
  EXPECT_EQ(Protobuf().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(Protobuf().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(Protobuf().message(3, Protobuf().number(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
}

TEST(Trace, SlicesAreAsLongAsTheHistorySays) {
  const SmallRun run;
  const Decoded trace(to_perfetto(run.history, "small"));
  EXPECT_THAT(trace.slices.at("rank 0"), ElementsAre(Pair("forward", 30), Pair("backward", 50), Pair("forward", 40)));
  EXPECT_THAT(trace.slices.at("supervisor"), ElementsAre(Pair("attempt 1", 230), Pair("attempt 2", 260)));
}

TEST(Trace, FaultsEndingsAndCheckpointsAreInstantsOfTheirRank) {
  const SmallRun run;
  const Decoded trace(to_perfetto(run.history, "small"));
  EXPECT_THAT(trace.instants.at("rank 1"), ElementsAre("fault: kill rank 1 </script>", "died"));
  EXPECT_THAT(trace.instants.at("rank 0"), ElementsAre("acknowledged 1-1-1", "restored 1-1-1"));
}

TEST(Trace, WhatASecondTaskDidMeanwhileLiesOnATrackOfItsOwn) {
  SmallRun run;
  run.spent(2, 0, 2, Phase::save, 60, 410);  // from 350 on: the main task was in forward from 360 to 400
  const Decoded trace(to_perfetto(run.history, "small"));
  EXPECT_THAT(trace.slices.at("rank 0, second task"), ElementsAre(Pair("save", 60)));
  EXPECT_THAT(trace.slices.at("rank 0"), Not(Contains(Pair("save", 60))));
}

TEST(Trace, OfNoHistoryNamesTheProcessAndTheSupervisorOnly) {
  Tables tables;
  const Decoded trace(to_perfetto(History(tables), "nothing"));
  EXPECT_THAT(trace.slices, testing::IsEmpty());
  EXPECT_THAT(trace.tracks, Not(Contains(Pair(testing::_, StartsWith("rank")))));
}

}  // namespace
}  // namespace firedrill
