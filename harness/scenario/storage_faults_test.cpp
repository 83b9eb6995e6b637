// Every kind of fault is read from a scenario with its options, said again in print, and refused where it cannot be.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/fields.h"

namespace firedrill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads one fault as it stands in a scenario.
FaultSpec read_fault(const std::string& text, std::vector<std::string>* mistakes = nullptr) {
  std::vector<Mistake> found;
  const auto source = std::make_shared<const Source>(Source{.name = "s"});
  const Node node = parse_yaml(text, source, found);
  Reader reader;
  FaultSpec fault;
  read_value(reader, node, "faults[0]", fault);
  for (const Mistake& mistake : reader.mistakes()) found.push_back(mistake);
  if (mistakes) {
    for (const Mistake& mistake : found) mistakes->push_back(to_string(mistake));
  } else {
    EXPECT_TRUE(found.empty()) << text << ": " << (found.empty() ? "" : to_string(found[0]));
  }
  return fault;
}

std::string options_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kill_node: return "lose_unsynced_data: true";
    case FaultKind::torn_write: return "lost: middle";
    case FaultKind::misdirected_write: return "lands_in: file";
    case FaultKind::slow:
    case FaultKind::slow_disk:
    case FaultKind::slow_shard: return "delay: 20ms";
    case FaultKind::bit_flip: return "target: moment";
    case FaultKind::nan: return "target: gradient";
    case FaultKind::corrupt_payload: return "damage: wrong_shard";
    case FaultKind::late_visibility: return "delay: 1s, looks: 3";
    case FaultKind::exit: return "code: 3";
    case FaultKind::clock_skew: return "behind: 2h";
    case FaultKind::delay_message: return "delay: 5ms, peer: 1";
    case FaultKind::drop_message: return "peer: 1";
    case FaultKind::partition: return "one_way: true, lasts: 2s";
    case FaultKind::slow_link: return "delay: 5ms, group: dp";
    case FaultKind::flaky_link: return "delay: 5ms, peer: 0, every: 2, lasts: 1s";
    default: return "";
  }
}

TEST(FaultFields, EveryKindIsReadAndSaidAgain) {
  for (const FaultKindInfo& info : fault_kinds()) {
    const std::string text =
        fmt::format("{{{}: {{{}}}, at: {{rank: 2, step: 4}}, times: 0}}", info.name, options_of(info.kind));
    const FaultSpec fault = read_fault(text);
    EXPECT_EQ(fault.kind, info.kind);
    EXPECT_EQ(fault.times, 0);
    const std::string printed = write_value(fault).dump();
    EXPECT_THAT(printed, HasSubstr(std::string(info.name)));
    const FaultSpec again = read_fault(printed);
    EXPECT_EQ(describe(again), describe(fault)) << printed;
    EXPECT_EQ(write_value(again).dump(), printed);
  }
}

TEST(FaultFields, OptionsAreThoseOfTheKind) {
  EXPECT_EQ(read_fault("{bit_flip: {target: parameter}, at: {rank: 0}}").target, Target::parameter);
  EXPECT_EQ(read_fault("{corrupt_payload: {damage: nan}, at: {rank: 0}}").damage, PayloadDamage::nan);
  EXPECT_EQ(read_fault("{torn_write: {lost: first}, at: {rank: 0}}").lost, Part::first);
  EXPECT_EQ(read_fault("{misdirected_write: {lands_in: file}, at: {rank: 0}}").lands_in, Landing::file);
  EXPECT_EQ(read_fault("{slow_disk: {delay: 20ms}, at: {rank: 0}}").delay, std::chrono::milliseconds(20));
  EXPECT_EQ(read_fault("{late_visibility: {looks: 3}, at: {rank: 0}}").looks, 3);
  EXPECT_EQ(read_fault("{clock_skew: {ahead: 1h}, at: {rank: 0}}").ahead, std::chrono::hours(1));
  std::vector<std::string> mistakes;
  read_fault("{dropped_write: {lost: first}, at: {rank: 0}}", &mistakes);
  EXPECT_THAT(mistakes, ElementsAre(HasSubstr("unknown key `lost`")));
  mistakes.clear();
  read_fault("{slow_disk: {}, at: {rank: 0}}", &mistakes);
  EXPECT_THAT(mistakes, ElementsAre(HasSubstr("missing key `delay`")));
}

}  // namespace
}  // namespace firedrill
