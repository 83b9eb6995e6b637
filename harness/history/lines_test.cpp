#include "harness/history/lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/rng.h"
#include "engine/seam/file_system.h"

namespace firedrill {
namespace {

// Events of every kind with every field set at random.
void fill(History& history, std::uint64_t seed) {
  Tables& tables = history.tables();
  Rng rng(seed);
  for (int round = 0; round < 5; ++round) {
    for (int kind = 0; kind < event_kind_count; ++kind) {
      Event event;
      event.kind = static_cast<EventKind>(kind);
      event.phase = static_cast<Phase>(rng.below(phase_count));
      event.rank = static_cast<std::int16_t>(static_cast<int>(rng.below(9)) - 1);
      event.attempt = static_cast<std::int32_t>(rng.below(4));
      event.step = static_cast<std::int64_t>(rng.below(100)) - 1;
      event.a = static_cast<std::int64_t>(rng.below(30)) - 1;
      event.b = static_cast<std::int64_t>(rng.next() >> 1);
      event.c = static_cast<std::int64_t>(rng.below(20));
      if (rng.chance(2, 3)) event.name = tables.names.intern("näme \"" + std::to_string(rng.below(9)) + "\"\n");
      if (rng.chance(1, 3)) event.detail = tables.names.intern("detail " + std::to_string(rng.below(9)));
      if (rng.chance(1, 2)) {
        event.digest = digest_of(std::to_string(rng.below(6)));
        const std::string owned = "tensor " + std::to_string(rng.below(4));
        const NamedDigest tensors[] = {{owned, event.digest}, {"a", {}}};
        if (rng.chance(1, 2)) tables.states.describe(event.digest, tensors);
      }
      event.time = Time(static_cast<std::int64_t>(rng.next() >> 20));
      if (event.kind == EventKind::probe) {
        ProbeResult result{.view = static_cast<ProbeView>(rng.below(2)),
                           .outcome = static_cast<ProbeOutcome>(rng.below(3)),
                           .complete = rng.chance(1, 2),
                           .provenance_coherent = rng.chance(1, 2)};
        if (result.outcome == ProbeOutcome::error) result.error = "no answer";
        if (result.outcome == ProbeOutcome::found) result.found = {4, 1, 2};
        if (result.outcome != ProbeOutcome::found) result.complete = result.provenance_coherent = false;
        const NamedDigest tensors[] = {{"weight", digest_of(std::string_view("w"))}};
        if (result.outcome == ProbeOutcome::found) result.state = tables.states.describe(tensors);
        result.seen = {{{2, 1, 1}, true, true}, {{4, 1, 2}, false, rng.chance(1, 2)}};
        event.a = tables.probes.add(result);
        event.b = static_cast<std::int64_t>(result.view);
      }
      history.append(event);
    }
  }
}

TEST(HistoryLines, SavingAndLoadingKeepsTheDigest) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Tables tables;
    History history(tables);
    fill(history, seed);
    Tables other_tables;
    other_tables.names.intern("seen before");
    History loaded(other_tables);
    const std::string lines = to_lines(history);
    const Status status = append_lines(lines, loaded);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(loaded.size(), history.size());
    EXPECT_EQ(loaded.digest(), history.digest());
    EXPECT_EQ(to_lines(loaded), lines);
  }
}

TEST(HistoryLines, FilesHoldTheSame) {
  Tables tables;
  History history(tables);
  fill(history, 1);
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "firedrill_history_lines_test").string();
  ASSERT_TRUE(save_history(history, path));
  History loaded(tables);
  ASSERT_TRUE(load_history(path, loaded));
  EXPECT_EQ(loaded.digest(), history.digest());
  std::filesystem::remove(path);
  EXPECT_TRUE(load_history(path, loaded).failed_with(Code::not_found));
}

TEST(HistoryLines, NameTheFieldsOfTheirKind) {
  Tables tables;
  History history(tables);
  Event event;
  event.kind = EventKind::disk_changed;
  event.a = static_cast<std::int64_t>(FileOp::rename);
  event.b = 12;
  event.c = 1 + static_cast<std::int64_t>(Code::no_space);
  event.name = tables.names.intern("manifests/x");
  event.rank = 2;
  history.append(event);
  EXPECT_EQ(to_lines(history),
            "{\"schema\":\"firedrill.history/1\"}\n"
            "{\"event\":\"disk_changed\",\"time\":0,\"rank\":2,\"operation\":\"rename\",\"bytes\":12,"
            "\"failed_with\":\"no_space\",\"path\":\"manifests/x\"}\n");
}

TEST(HistoryLines, SayAtWhichFileOperationAFaultFiredIfAtAny) {
  for (const auto& [number, word] :
       {std::pair(std::int64_t{0}, "none"), std::pair(1 + static_cast<std::int64_t>(FileOp::rename), "rename")}) {
    Tables tables;
    History history(tables);
    history.append({.kind = EventKind::fault_fired, .b = number});
    EXPECT_THAT(to_lines(history), testing::HasSubstr(fmt::format("\"file_operation\":\"{}\"", word)));
  }
}

TEST(HistoryLines, PassOverWhatTheyDoNotKnow) {
  Tables tables;
  History history(tables);
  const Status status = append_lines(
      "{\"schema\":\"firedrill.history/1\",\"maker\":\"other\"}\n"
      "{\"remark\":1}\n"
      "{\"event\":\"step_done\",\"step\":3,\"rank\":1,\"colour\":\"red\"}\n",
      history);
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].step, 3);
}

TEST(HistoryLines, RefuseWhatCannotBeRead) {
  const std::string header = "{\"schema\":\"firedrill.history/1\"}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: the first line must say the schema"},
      {"{\"schema\":\"firedrill.history/2\"}\n", "line 1: schema"},
      {header + "garbage\n", "line 2: not a JSON object"},
      {header + "[1]\n", "line 2: not a JSON object"},
      {header + "{\"event\":\"dance\"}\n", "\"dance\" is not a kind of event"},
      {header + "{\"event\":\"note\",\"rank\":70000}\n", "rank: 70000 is not a number from -1"},
      {header + "{\"event\":\"note\",\"step\":\"x\"}\n", "step: \"x\" is not"},
      {header + "{\"event\":\"note\",\"step\":1.5}\n", "step: 1.5 is not"},
      {header + "{\"event\":\"note\",\"step\":18446744073709551615}\n", "step: 18446744073709551615 is not"},
      {header + "{\"event\":\"note\",\"phase\":\"lunch\"}\n", "phase: \"lunch\" is not"},
      {header + "{\"event\":\"golden\",\"state\":\"12\"}\n", "state: \"12\" is not 32 hexadecimal digits"},
      {header + "{\"event\":\"probe\",\"result\":0}\n", "probe result 0 is not described before"},
      {header + "{\"probe_result\":0,\"found\":\"4-1\"}\n", "found: \"4-1\" is not step-attempt-try"},
      {header + "{\"probe_result\":0,\"seen\":[1]}\n", "seen: an entry is not an object"},
      {header + "{\"state\":\"zz\",\"tensors\":{}}\n", "a state needs its digest"},
  };
  for (const auto& [text, message] : cases) {
    Tables tables;
    History history(tables);
    const Status status = append_lines(text, history);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, Code::invalid_input);
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace firedrill
