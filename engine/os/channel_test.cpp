#include "engine/os/channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "engine/base/rng.h"
#include "engine/os/channel_frame.h"
#include "engine/os/channel_peer.h"

namespace firedrill {
namespace {

struct Heard final : ChannelListener {
  void on_event(int, const Event& event, std::string_view name, std::string_view detail, bool asked) override {
    events.push_back(event);
    names.emplace_back(std::string(name) + "|" + std::string(detail));
    if (asked && answer) answer();
  }
  void on_state(int, const Digest& digest, std::span<const NamedDigest> tensors) override {
    states.push_back(digest);
    for (const NamedDigest& tensor : tensors) names.emplace_back(tensor.name);
  }
  void on_heartbeat(int, std::uint64_t count, const PulseReading& reading) override {
    beats = count;
    pulse = reading;
  }
  void on_outcome(int, const RankOutcome& outcome) override { outcomes.push_back(outcome); }
  std::uint64_t beats = 0;
  PulseReading pulse;
  std::vector<Event> events;
  std::vector<std::string> names;
  std::vector<Digest> states;
  std::vector<RankOutcome> outcomes;
  std::function<void()> answer;
};

struct Line {
  explicit Line(std::function<void(const Command&)> on_command = [](const Command&) {}) {
    auto ends = make_channel();
    peer = std::make_unique<ChannelPeer>(3, std::move(ends->first), heard);
    channel = std::make_unique<Channel>(std::move(ends->second), std::move(on_command));
  }
  void hear_all() {
    pollfd watched{.fd = peer->descriptor(), .events = POLLIN, .revents = 0};
    while (::poll(&watched, 1, 0) > 0 && peer->receive()) {
    }
  }
  Heard heard;
  std::unique_ptr<ChannelPeer> peer;
  std::unique_ptr<Channel> channel;
};

TEST(Channel, ASignOfLifeArrivesWithThePulse) {
  Line line;
  const PulseReading sent{.progress = 1234567890123, .waits_for = PulseReading::store, .step = 9, .phase = Phase::find};
  line.channel->heartbeat(17, sent);
  line.hear_all();
  EXPECT_EQ(line.heard.beats, 17U);
  EXPECT_EQ(line.heard.pulse, sent);
}

TEST(Channel, AnEventArrivesWithEveryFieldAndItsNames) {
  Line line;
  const Event sent{.kind = EventKind::shard_written,
                   .phase = Phase::save,
                   .rank = 3,
                   .attempt = 2,
                   .step = 40,
                   .a = -1,
                   .b = std::int64_t{1} << 40,
                   .c = 7,
                   .name = line.channel->intern("shards/40-2-1/model-3"),
                   .detail = line.channel->intern("second"),
                   .digest = digest_of("content"),
                   .time = Time(123456789)};
  line.channel->event(sent);
  line.hear_all();
  ASSERT_EQ(line.heard.events.size(), 1U);
  const Event& got = line.heard.events[0];
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.phase, sent.phase);
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.attempt, sent.attempt);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.a, sent.a);
  EXPECT_EQ(got.b, sent.b);
  EXPECT_EQ(got.c, sent.c);
  EXPECT_EQ(got.digest, sent.digest);
  EXPECT_EQ(got.time, sent.time);
  EXPECT_EQ(line.heard.names[0], "shards/40-2-1/model-3|second");
}

TEST(Channel, ANameAndAStateAreSentOnce) {
  Line line;
  const NameId first = line.channel->intern("a");
  EXPECT_NE(first, line.channel->intern("b"));
  EXPECT_EQ(first, line.channel->intern("a"));
  EXPECT_EQ(line.channel->intern(""), 0U);
  const Digest state = digest_of("state");
  EXPECT_FALSE(line.channel->knows_state(state));
  const std::array<NamedDigest, 2> tensors = {NamedDigest{"t", digest_of("t")}, NamedDigest{"u", digest_of("u")}};
  line.channel->describe_state(state, tensors);
  line.channel->describe_state(state, tensors);
  EXPECT_TRUE(line.channel->knows_state(state));
  line.channel->event(Event{.name = line.channel->intern("b")});
  line.hear_all();
  EXPECT_EQ(line.heard.states, std::vector<Digest>{state});
  EXPECT_EQ(line.heard.names, (std::vector<std::string>{"t", "u", "b|"}));
}

TEST(Channel, AnAskReturnsWhenItIsAnsweredAndNotBefore) {
  Line line;
  std::atomic<bool> returned = false;
  std::thread rank([&] {
    line.channel->ask(Event{.kind = EventKind::fault_fired});
    returned = true;
  });
  while (line.heard.events.empty()) line.hear_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  line.peer->answer();
  rank.join();
  EXPECT_TRUE(returned);
}

TEST(Channel, CommandsReachTheRankAndSoDoesTheEndOfTheSupervisor) {
  std::counting_semaphore<8> told(0);
  std::vector<Command> commands;
  Line line([&](const Command& command) {
    commands.push_back(command);
    told.release();
  });
  line.peer->stop(Error{.code = Code::aborted, .message = "preempted"});
  told.acquire();
  line.peer->abort(Error{.code = Code::aborted, .message = "rank 1 died"});
  told.acquire();
  line.peer.reset();
  told.acquire();
  line.channel->ask(Event{});  // returns, since nobody will answer
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].kind, CommandKind::stop);
  EXPECT_EQ(commands[1].kind, CommandKind::abort);
  EXPECT_EQ(commands[1].reason.message, "rank 1 died");
  EXPECT_EQ(commands[2].kind, CommandKind::abort);
}

TEST(Channel, MoreThanTheSocketHoldsArrivesInOrder) {
  Line line;
  std::thread rank([&] {
    for (std::int64_t i = 0; i < 20'000; ++i) line.channel->event(Event{.a = i});
  });
  while (line.heard.events.size() < 20'000) line.hear_all();
  rank.join();
  for (std::size_t i = 0; i < 20'000; ++i) ASSERT_EQ(line.heard.events[i].a, static_cast<std::int64_t>(i));
}

TEST(ChannelPeer, ACutRecordEndsTheLineAndIsReported) {
  ByteWriter frame;
  open_frame(frame, FrameKind::event);
  write_event(Event{}, frame);
  for (std::size_t size = frame_length_size; size < frame.size(); ++size) {
    auto ends = make_channel();
    Heard heard;
    ChannelPeer peer(0, std::move(ends->first), heard);
    std::vector<std::byte> bytes(frame.bytes().begin(), frame.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    bytes[0] = static_cast<std::byte>(size - frame_length_size);  // whole as a frame, cut as a record
    ASSERT_EQ(::send(ends->second.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_FALSE(peer.receive()) << size;
    EXPECT_FALSE(peer.understood()) << size;
    EXPECT_TRUE(heard.events.empty()) << size;
  }
}

TEST(ChannelPeer, GarbageDoesNoHarm) {
  Rng rng(1);
  for (int round = 0; round < 2'000; ++round) {
    auto ends = make_channel();
    Heard heard;
    ChannelPeer peer(0, std::move(ends->first), heard);
    std::vector<std::byte> bytes(100);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    bytes[0] = std::byte{96};
    bytes[1] = bytes[2] = bytes[3] = std::byte{0};
    bytes[4] = static_cast<std::byte>(rng.below(8));
    ASSERT_EQ(::send(ends->second.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    peer.receive();
    EXPECT_TRUE(peer.understood() || heard.events.empty());
  }
}

}  // namespace
}  // namespace firedrill
