// What the two tasks of a rank share in the process world, used by both at once: transport, host, channel and disk.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "engine/os/channel.h"
#include "engine/os/channel_peer.h"
#include "engine/os/directory_file_system.h"
#include "engine/os/process_host.h"
#include "engine/os/tcp_transport.h"

namespace firedrill {
namespace {

constexpr Time soon = std::chrono::seconds(60);
constexpr int ranks = 3;
constexpr int rounds = 40;
constexpr EventId publish_done = 1;

struct Counting final : ChannelListener {
  void on_event(int, const Event& event, std::string_view name, std::string_view, bool) override {
    if (name == (event.a == 0 ? "train" : "publish")) ++events;
  }
  void on_state(int, const Digest&, std::span<const NamedDigest>) override {}
  void on_heartbeat(int, std::uint64_t, const PulseReading&) override {}
  void on_outcome(int, const RankOutcome&) override {}
  int events = 0;
};

// One rank: its main exchanges with all peers round by round; in every fourth round it starts a second task that does
// the same under another tag and writes a file, and joins the one before.
class Rank {
 public:
  Rank(int number, Epoch epoch, FileSystem& files)
      : number_(number), clock_(epoch, abort_), host_(0, epoch), files_(files) {
    auto ends = make_channel();
    peer_ = std::make_unique<ChannelPeer>(number, std::move(ends->first), heard_);
    channel_ = std::make_unique<Channel>(std::move(ends->second), [](const Command&) {});
    auto transport = TcpTransport::listen(
        {.rank = number, .world_size = ranks, .attempt = 1, .run = digest_of("run"), .epoch = epoch});
    transport_ = std::move(*transport);
  }

  std::string address() const { return transport_->address(); }
  void live(const std::vector<std::string>& addresses) {
    ASSERT_TRUE(transport_->connect(addresses, soon));
    bool in_flight = false;
    for (int round = 0; round < rounds; ++round) {
      exchange(7, round, 0);
      if (round % 4 != 0) continue;
      if (in_flight) {
        ASSERT_TRUE(host_.wait(publish_done, soon));
      }
      in_flight = true;
      ASSERT_TRUE(host_.spawn("publisher", [this, round] {
        publish(round);
        host_.notify(publish_done);
      }));
    }
    ASSERT_TRUE(host_.wait(publish_done, soon));
    host_.join_tasks();
  }
  int events_heard() {
    pollfd watched{.fd = peer_->descriptor(), .events = POLLIN, .revents = 0};
    while (::poll(&watched, 1, 0) > 0 && peer_->receive()) {
    }
    return heard_.events;
  }

 private:
  void exchange(Tag tag, int round, std::int64_t task) {
    ChannelObserver observer(*channel_, clock_);
    observer.event({.kind = EventKind::note, .a = task, .name = observer.intern(task == 0 ? "train" : "publish")});
    for (int peer = 0; peer < ranks; ++peer) {
      ASSERT_TRUE(transport_->send(peer, tag, Value::copy_of(fmt::format("{}-{}-{}", tag, number_, round)), soon));
    }
    for (int peer = 0; peer < ranks; ++peer) {
      const Result<Value> got = transport_->recv(peer, tag, soon);
      ASSERT_TRUE(got) << describe(got.error());
      EXPECT_EQ(got->text(), fmt::format("{}-{}-{}", tag, peer, round));
    }
  }
  void publish(int round) {
    exchange(8, round, 1);
    const auto file = files_.create(fmt::format("{}-{}", number_, round));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, Value::copy_of("shard")));
    ASSERT_TRUE((*file)->sync());
    exchange(9, round, 1);
  }

  int number_;
  AbortSignal abort_;
  SteadyClock clock_;
  ProcessHost host_;
  FileSystem& files_;
  Counting heard_;
  std::unique_ptr<ChannelPeer> peer_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<TcpTransport> transport_;
};

TEST(TwoTasks, OfARankShareItsSeamsAndNothingOfOneReachesTheOther) {
  std::string directory = (std::filesystem::temp_directory_path() / "firedrill-tasks-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  {
    const auto files = DirectoryFileSystem::open_root(directory);
    ASSERT_TRUE(files);
    const Epoch epoch = Epoch::now();
    std::vector<std::unique_ptr<Rank>> all;
    std::vector<std::string> addresses;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(std::make_unique<Rank>(rank, epoch, **files));
      addresses.push_back(all.back()->address());
    }
    std::vector<std::thread> threads;
    for (auto& rank : all) threads.emplace_back([&] { rank->live(addresses); });
    for (std::thread& thread : threads) thread.join();
    for (auto& rank : all) EXPECT_EQ(rank->events_heard(), rounds + 2 * rounds / 4);
    EXPECT_EQ((*files)->list("")->size(), static_cast<std::size_t>(ranks * rounds / 4));
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace firedrill
