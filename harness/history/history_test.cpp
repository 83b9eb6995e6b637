#include "harness/history/history.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/history/recorder.h"

namespace firedrill {
namespace {

Event event_of(EventKind kind, std::int64_t step = 0) {
  Event event;
  event.kind = kind;
  event.step = step;
  return event;
}

TEST(NameTable, SameTextGivesSameNumberAndNumberGivesText) {
  NameTable names;
  EXPECT_EQ(names.intern(""), 0U);
  std::vector<NameId> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(names.intern("name " + std::to_string(i)));
  for (int i = 0; i < 5000; ++i) {
    const std::string text = "name " + std::to_string(i);
    ASSERT_EQ(names.intern(text), ids[static_cast<std::size_t>(i)]);
    ASSERT_EQ(names.text(ids[static_cast<std::size_t>(i)]), text);
    ASSERT_EQ(names.digest(ids[static_cast<std::size_t>(i)]), digest_of(std::string_view(text)));
  }
  EXPECT_EQ(names.size(), 5001U);
}

class States : public ::testing::Test {
 protected:
  StateId state(std::string_view seed, std::initializer_list<NamedDigest> tensors) {
    return states_.describe(digest_of(seed), std::span(tensors.begin(), tensors.size()));
  }
  const Digest one_ = digest_of(std::string_view("one"));
  const Digest two_ = digest_of(std::string_view("two"));
  NameTable names_;
  StateTable states_{names_};
};

TEST_F(States, ADescribedStateIsKnownAndKeptOnce) {
  const StateId first = state("s", {{"b", two_}, {"a", one_}});
  EXPECT_EQ(state("s", {{"z", one_}}), first);
  EXPECT_EQ(states_.find(digest_of(std::string_view("s"))), first);
  EXPECT_EQ(states_.find(digest_of(std::string_view("t"))), no_state);
  ASSERT_EQ(states_.tensors(first).size(), 2U);
}

TEST_F(States, APartIsWithinTheWholeButNotTheOtherWayRound) {
  const StateId whole = state("whole", {{"a", one_}, {"b", two_}, {"c", one_}});
  const StateId part = state("part", {{"c", one_}, {"a", one_}});
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(states_.within(part, whole));
    EXPECT_FALSE(states_.within(whole, part));
    EXPECT_FALSE(states_.equal(part, whole));
    EXPECT_TRUE(states_.agree(part, whole));
  }
  EXPECT_FALSE(states_.within(no_state, whole));
}

TEST_F(States, OneChangedTensorIsNamed) {
  const StateId a = state("x", {{"z", one_}, {"b", one_}, {"y", one_}});
  const StateId b = state("y", {{"b", one_}, {"y", two_}, {"z", two_}});
  EXPECT_FALSE(states_.within(a, b));
  EXPECT_FALSE(states_.agree(a, b));
  const auto difference = states_.difference(a, b, false);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->tensor, "y");  // "z" was named first; the first by text counts
  EXPECT_NE(difference->how.find(one_.hex()), std::string::npos);
  EXPECT_NE(difference->how.find(two_.hex()), std::string::npos);
}

TEST_F(States, AMissingTensorIsADifferenceOnTheSideThatCounts) {
  const StateId whole = state("whole", {{"a", one_}, {"b", two_}});
  const StateId part = state("part", {{"a", one_}});
  EXPECT_FALSE(states_.difference(part, whole, false));
  EXPECT_EQ(states_.difference(part, whole, true)->tensor, "b");
  EXPECT_EQ(states_.difference(whole, part, false)->how, "is not in the other");
}

TEST_F(States, AnUnnamedStateIsKnownByItsTensorsInAnyOrder) {
  const NamedDigest forward[] = {{"a", one_}, {"b", two_}};
  const NamedDigest backward[] = {{"b", two_}, {"a", one_}};
  const NamedDigest other[] = {{"a", two_}, {"b", two_}};
  EXPECT_EQ(states_.describe(forward), states_.describe(backward));
  EXPECT_NE(states_.describe(forward), states_.describe(other));
}

TEST(History, FindsTheEventsOfAKindInOrder) {
  Tables tables;
  History history(tables);
  EXPECT_TRUE(history.of(EventKind::note).empty());
  history.append(event_of(EventKind::sample, 1));
  history.append(event_of(EventKind::note));
  history.append(event_of(EventKind::sample, 2));
  ASSERT_EQ(history.of(EventKind::sample).size(), 2U);
  EXPECT_EQ(history.of(EventKind::sample)[0], 0U);
  EXPECT_EQ(history.of(EventKind::sample)[1], 2U);
  history.append(event_of(EventKind::attempt_started));
  EXPECT_EQ(history.of(EventKind::attempt_started)[0], 3U);
  EXPECT_EQ(history.of(EventKind::note).size(), 1U);
  history.reset();
  EXPECT_TRUE(history.of(EventKind::sample).empty());
}

TEST(History, DigestSeesEveryField) {
  Tables tables;
  const auto digest_with = [&](auto change) {
    History history(tables);
    for (int i = 0; i < 100; ++i) history.append(event_of(EventKind::sample, i));  // more than one block
    Event event = event_of(EventKind::note, 7);
    change(event);
    history.append(event);
    return history.digest();
  };
  const std::vector<Digest> all = {
      digest_with([](Event&) {}),
      digest_with([](Event& e) { e.kind = EventKind::sample; }),
      digest_with([](Event& e) { e.phase = Phase::save; }),
      digest_with([](Event& e) { e.rank = 3; }),
      digest_with([](Event& e) { e.attempt = 2; }),
      digest_with([](Event& e) { e.step = 8; }),
      digest_with([](Event& e) { e.a = 1; }),
      digest_with([](Event& e) { e.b = 1; }),
      digest_with([](Event& e) { e.c = 1; }),
      digest_with([&](Event& e) { e.name = tables.names.intern("x"); }),
      digest_with([&](Event& e) { e.detail = tables.names.intern("x"); }),
      digest_with([](Event& e) { e.digest = digest_of(std::string_view("d")); }),
      digest_with([](Event& e) { e.time = Time(5); }),
  };
  EXPECT_EQ(std::set<Digest>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(digest_with([](Event&) {}), all[0]);
}

TEST(History, DigestDoesNotDependOnWhatTheTablesSawBefore) {
  const auto digest_after = [](bool used_before) {
    Tables tables;
    if (used_before) {
      tables.names.intern("something else");
      tables.probes.add({.outcome = ProbeOutcome::error, .error = "other"});
    }
    History history(tables);
    Event event = event_of(EventKind::probe);
    event.a = tables.probes.add({.outcome = ProbeOutcome::found, .found = {4, 1, 1}});
    event.name = tables.names.intern("name");
    history.append(event);
    return history.digest();
  };
  EXPECT_EQ(digest_after(false), digest_after(true));
}

TEST(History, DigestSeesWhatAProbeSays) {
  Tables tables;
  const auto digest_of_one = [&](const ProbeResult& result) {
    History history(tables);
    Event event = event_of(EventKind::probe);
    event.a = tables.probes.add(result);
    history.append(event);
    return history.digest();
  };
  const ProbeResult base{.outcome = ProbeOutcome::found, .found = {4, 1, 1}, .complete = true, .seen = {{{4, 1, 1}}}};
  std::set<Digest> all{digest_of_one(base)};
  const auto differs = [&](auto change) {
    ProbeResult other = base;
    change(other);
    return all.insert(digest_of_one(other)).second;
  };
  EXPECT_TRUE(differs([](ProbeResult& r) { r.view = ProbeView::power_fails; }));
  EXPECT_TRUE(differs([](ProbeResult& r) { r.found.trial = 2; }));
  EXPECT_TRUE(differs([](ProbeResult& r) { r.complete = false; }));
  EXPECT_TRUE(differs([](ProbeResult& r) { r.provenance_coherent = true; }));
  EXPECT_TRUE(differs([](ProbeResult& r) { r.reason = "torn"; }));
  EXPECT_TRUE(differs([](ProbeResult& r) { r.seen[0].validated = true; }));
  EXPECT_FALSE(differs([](ProbeResult&) {}));
}

TEST(HistoryRecorder, StampsTheTimeAndSharesTheTables) {
  Tables tables;
  History history(tables);
  std::int64_t now = 10;
  HistoryRecorder recorder(history, [&] { return Time(now); });
  const Position position{.attempt = 2, .rank = 1, .step = 3, .phase = Phase::save};
  Event event = event_of(EventKind::note);
  event.name = recorder.intern("hello");
  emit(recorder, position, event);
  now = 20;
  emit(recorder, position, event);
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0].time, Time(10));
  EXPECT_EQ(history[1].time, Time(20));
  EXPECT_EQ(history[1].rank, 1);
  EXPECT_EQ(history.text(history[0].name), "hello");
  const Digest state = digest_of(std::string_view("state"));
  EXPECT_FALSE(recorder.knows_state(state));
  recorder.describe_state(state, {});
  EXPECT_TRUE(recorder.knows_state(state));
}

}  // namespace
}  // namespace firedrill
