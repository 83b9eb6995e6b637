#include "engine/os/tcp_transport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <semaphore>
#include <thread>

#include "engine/base/rng.h"
#include "engine/base/text.h"
#include "engine/base/value_codec.h"
#include "engine/os/tcp_envelope.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time soon = seconds(20);

TcpTransportOptions options_for(int rank, int world_size, Epoch epoch, int attempt = 1) {
  return TcpTransportOptions{
      .rank = rank, .world_size = world_size, .attempt = attempt, .run = digest_of("run"), .epoch = epoch};
}

// Runs `body` once per rank, each on a thread of its own, over a connected mesh.
void with_mesh(int world_size, const std::function<void(TcpTransport&, Epoch)>& body) {
  const Epoch epoch = Epoch::now();
  std::vector<std::unique_ptr<TcpTransport>> ranks;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < world_size; ++rank) {
    auto transport = TcpTransport::listen(options_for(rank, world_size, epoch));
    ASSERT_TRUE(transport) << describe(transport.error());
    addresses.push_back((*transport)->address());
    ranks.push_back(std::move(*transport));
  }
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&addresses, &rank, &body, epoch] {
      const Status connected = rank->connect(addresses, soon);
      ASSERT_TRUE(connected) << describe(connected.error());
      body(*rank, epoch);
      rank.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string code_of(const Status& status) { return status ? "well" : std::string(to_string(status.error().code)); }
std::string code_of(const Result<Value>& value) { return value ? "well" : std::string(to_string(value.error().code)); }

// What a link is blamed for must not be its receiver's: that one computes, or waits for a core.
TEST(TcpTransport, AMessageIsUnderWayUntilItCameInAndNotUntilItsReceiverReadsIt) {
  std::binary_semaphore sent{0};
  with_mesh(2, [&sent](TcpTransport& transport, Epoch) {
    const Value large(Value::copy_of(std::string(20'000, 'x')));
    if (transport.rank() == 1) {
      ASSERT_TRUE(transport.send(0, 7, large, soon));
      sent.release();
      ASSERT_TRUE(transport.recv(0, 8, soon));
      return;
    }
    sent.acquire();
    std::this_thread::sleep_for(milliseconds(400));
    ASSERT_TRUE(transport.recv(1, 7, soon));
    EXPECT_LT(transport.under_way(1, 7), milliseconds(200));
    EXPECT_FALSE(transport.under_way(1, 8)) << "another message was taken last";
    ASSERT_TRUE(transport.send(1, 8, large, soon));
  });
}

TEST(TcpTransport, MessagesOfOneTagArriveInOrderAndTagsDoNotMix) {
  with_mesh(3, [](TcpTransport& transport, Epoch) {
    const int me = transport.rank();
    for (int peer = 0; peer < 3; ++peer) {
      for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(transport.send(peer, 1, Value::copy_of(fmt::format("a{}-{}", me, i)), soon));
        ASSERT_TRUE(transport.send(peer, 2, Value::copy_of(fmt::format("b{}-{}", me, i)), soon));
      }
    }
    for (int peer = 0; peer < 3; ++peer) {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(transport.recv(peer, 2, soon)->text(), fmt::format("b{}-{}", peer, i));
      for (int i = 0; i < 20; ++i) EXPECT_EQ(transport.recv(peer, 1, soon)->text(), fmt::format("a{}-{}", peer, i));
    }
  });
}

TEST(TcpTransport, PacksAndEmptyValuesArriveAsTheyWere) {
  with_mesh(2, [](TcpTransport& transport, Epoch) {
    const Value value = Value::pack({Value::copy_of("x"), Value(), Value::pack({Value::copy_of("")})});
    ASSERT_TRUE(transport.send(1 - transport.rank(), 0, value, soon));
    ASSERT_TRUE(transport.send(1 - transport.rank(), 0, Value(), soon));
    const auto got = transport.recv(1 - transport.rank(), 0, soon);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->key(), value.key());
    const auto nothing = transport.recv(1 - transport.rank(), 0, soon);
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
  });
}

TEST(TcpTransport, TwoRanksThatSendEachOtherMoreThanTheSocketsHoldBothGetThrough) {
  with_mesh(2, [](TcpTransport& transport, Epoch) {
    MutableValue buffer(DType::u8, Shape{64 << 20});
    std::memset(buffer.bytes().data(), transport.rank() + 1, buffer.bytes().size());
    const Value mine = std::move(buffer).freeze();
    ASSERT_TRUE(transport.send(1 - transport.rank(), 7, mine, soon));
    const auto theirs = transport.recv(1 - transport.rank(), 7, soon);
    ASSERT_TRUE(theirs);
    ASSERT_EQ(theirs->size(), mine.size());
    EXPECT_EQ(theirs->bytes().back(), static_cast<std::byte>(2 - transport.rank()));
  });
}

TEST(TcpTransport, AReceiveEndsAtItsDeadline) {
  with_mesh(2, [](TcpTransport& transport, Epoch epoch) {
    if (transport.rank() == 1) {
      ASSERT_TRUE(transport.recv(0, 9, soon));
      return;
    }
    const Time until = epoch.elapsed() + milliseconds(50);
    EXPECT_EQ(code_of(transport.recv(1, 5, until)), "timeout");
    EXPECT_GE(epoch.elapsed(), until);
    EXPECT_LT(epoch.elapsed(), until + seconds(5));
    ASSERT_TRUE(transport.send(1, 9, Value::copy_of("done"), soon));
  });
}

TEST(TcpTransport, ASendToOneWhoDoesNotReadEndsAtItsDeadline) {
  with_mesh(2, [](TcpTransport& transport, Epoch epoch) {
    if (transport.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(300));  // busy, as with a long kernel
      ASSERT_TRUE(transport.recv(0, 1, soon)) << "what timed out at the sender may still arrive";
      return;
    }
    const Value big = std::move(MutableValue(DType::u8, Shape{64 << 20})).freeze();
    EXPECT_EQ(code_of(transport.send(1, 1, big, epoch.elapsed() + milliseconds(100))), "timeout");
    EXPECT_EQ(code_of(transport.recv(1, 2, soon)), "aborted") << "driving the I/O until the peer has all and leaves";
  });
}

TEST(TcpTransport, MessagesOfAPeerThatLeftAreDeliveredBeforeItsEndIsReported) {
  with_mesh(2, [](TcpTransport& transport, Epoch epoch) {
    if (transport.rank() == 1) {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(transport.send(0, 4, Value::copy_of(fmt::format("{}", i)), soon));
      return;  // its transport is destroyed
    }
    EXPECT_EQ(code_of(transport.recv(1, 8, soon)), "aborted");
    for (int i = 0; i < 3; ++i) {
      const auto got = transport.recv(1, 4, soon);
      ASSERT_TRUE(got);
      EXPECT_EQ(got->text(), fmt::format("{}", i));
    }
    const Time before = epoch.elapsed();
    const auto gone = transport.recv(1, 4, before + soon);
    ASSERT_EQ(code_of(gone), "aborted");
    EXPECT_NE(gone.error().message.find("rank 1"), std::string::npos);
    EXPECT_LT(epoch.elapsed() - before, seconds(1)) << "at once";
    EXPECT_EQ(code_of(transport.send(1, 4, Value::copy_of("x"), soon)), "aborted");
  });
}

TEST(TcpTransport, AbortEndsAWaitOfAnotherThreadAndIsSeenByThePeer) {
  std::binary_semaphore seen(0);
  with_mesh(2, [&seen](TcpTransport& transport, Epoch epoch) {
    if (transport.rank() == 1) {
      EXPECT_EQ(code_of(transport.recv(0, 1, soon)), "aborted");
      seen.release();
      return;
    }
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(50));
      transport.abort(Error{.code = Code::aborted, .message = "rank 3 died"});
    });
    const auto waited = transport.recv(1, 1, soon);
    other.join();
    ASSERT_EQ(code_of(waited), "aborted");
    EXPECT_EQ(waited.error().message, "rank 3 died");
    EXPECT_EQ(code_of(transport.send(1, 1, Value::copy_of("x"), soon)), "aborted") << "later calls, too";
    EXPECT_TRUE(seen.try_acquire_for(seconds(10))) << "while this end still lives";
    EXPECT_LT(epoch.elapsed(), seconds(10));
  });
}

TEST(TcpTransport, SeveralThreadsMayWaitAtOnce) {
  with_mesh(2, [](TcpTransport& transport, Epoch) {
    const int peer = 1 - transport.rank();
    std::vector<std::thread> tasks;
    for (Tag tag = 0; tag < 4; ++tag) {
      tasks.emplace_back([&transport, peer, tag] {
        for (std::int64_t i = 0; i < 200; ++i) {
          const std::array<std::int64_t, 1> sent = {i};
          ASSERT_TRUE(transport.send(peer, tag, Value::copy_of(std::span<const std::int64_t>(sent)), soon));
          const auto got = transport.recv(peer, tag, soon);
          ASSERT_TRUE(got) << describe(got.error());
          EXPECT_EQ(got->as<std::int64_t>()[0], i);
        }
      });
    }
    for (std::thread& task : tasks) task.join();
  });
}

TEST(TcpTransport, ConnectingToADeadPeerIsAbortedAndToNobodyTimesOut) {
  const Epoch epoch = Epoch::now();
  auto dead = TcpTransport::listen(options_for(0, 2, epoch));
  auto alive = TcpTransport::listen(options_for(1, 2, epoch));
  ASSERT_TRUE(dead && alive);
  const std::vector<std::string> addresses = {(*dead)->address(), (*alive)->address()};
  dead->reset();
  const Status refused = (*alive)->connect(addresses, soon);
  ASSERT_EQ(code_of(refused), "aborted");
  EXPECT_NE(refused.error().message.find("rank 0"), std::string::npos);

  auto first = TcpTransport::listen(options_for(0, 2, epoch));
  ASSERT_TRUE(first);
  EXPECT_EQ(code_of((*first)->connect({(*first)->address(), "127.0.0.1:1"}, epoch.elapsed() + milliseconds(50))),
            "timeout");
}

TEST(TcpTransport, ARankOfAnotherAttemptIsNotLetIn) {
  const Epoch epoch = Epoch::now();
  auto current = TcpTransport::listen(options_for(0, 2, epoch, 2));
  auto old = TcpTransport::listen(options_for(1, 2, epoch, 1));
  auto right = TcpTransport::listen(options_for(1, 2, epoch, 2));
  ASSERT_TRUE(current && old && right);
  const std::vector<std::string> addresses = {(*current)->address(), ""};
  std::thread stranger([&] { EXPECT_EQ(code_of((*old)->connect(addresses, soon)), "aborted"); });
  std::thread host([&] { EXPECT_EQ(code_of((*current)->connect(addresses, soon)), "well"); });
  stranger.join();
  EXPECT_EQ(code_of((*right)->connect(addresses, soon)), "well");
  host.join();
  EXPECT_EQ((*current)->foreign_dropped(), 1);
}

// A peer that speaks the protocol by hand.
class HandMadePeer {
 public:
  HandMadePeer(const std::string& address, int rank, int attempt) : rank_(rank), attempt_(attempt), socket_(io_) {
    const std::vector<std::string> parts = split(address, ':');
    socket_.connect({boost::asio::ip::make_address(parts[0]), static_cast<std::uint16_t>(std::stoi(parts[1]))});
    say(EnvelopeKind::hello, attempt, 0, nullptr);
  }
  void say(EnvelopeKind kind, int attempt, Tag tag, const Value* value) {
    Envelope envelope{.kind = kind, .from = rank_, .attempt = attempt, .run = digest_of("run"), .tag = tag};
    ByteWriter out;
    if (value) {
      envelope.outline_size = static_cast<std::uint32_t>(outline_of(*value).size());
      envelope.bytes = value->bytes_total();
    }
    write_envelope(envelope, out);
    if (value) out.raw(outline_of(*value)).raw(value->bytes());
    raw(out.bytes());
  }
  void raw(std::span<const std::byte> bytes) {
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()));
  }

 private:
  int rank_;
  int attempt_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

TEST(TcpTransport, TheFirstMessageTakenFromAPeerIsToldOfWithTheAttemptThatItCarries) {
  auto transport = TcpTransport::listen(options_for(0, 2, Epoch::now(), 2));
  ASSERT_TRUE(transport);
  std::vector<std::pair<int, int>> told;
  (*transport)->tell_first_messages([&told](int peer, int sent_in) { told.emplace_back(peer, sent_in); });
  HandMadePeer peer((*transport)->address(), 1, 2);
  ASSERT_TRUE((*transport)->connect({(*transport)->address(), ""}, soon));
  const Value text = Value::copy_of("text");
  for (const int attempt : {1, 2, 2}) peer.say(EnvelopeKind::message, attempt, 5, &text);
  ASSERT_TRUE((*transport)->recv(1, 5, soon));
  ASSERT_TRUE((*transport)->recv(1, 5, soon));
  EXPECT_EQ(told, (std::vector<std::pair<int, int>>{{1, 2}})) << "what was dropped was not taken";
}

TEST(TcpTransport, AMessageOfAnotherAttemptIsDroppedAndCounted) {
  auto transport = TcpTransport::listen(options_for(0, 2, Epoch::now(), 2));
  ASSERT_TRUE(transport);
  HandMadePeer peer((*transport)->address(), 1, 2);
  ASSERT_TRUE((*transport)->connect({(*transport)->address(), ""}, soon));
  const Value old = Value::copy_of("old");
  const Value current = Value::copy_of("current");
  peer.say(EnvelopeKind::message, 1, 5, &old);
  peer.say(EnvelopeKind::message, 2, 5, &current);
  const auto got = (*transport)->recv(1, 5, soon);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->text(), "current");
  EXPECT_EQ((*transport)->foreign_dropped(), 1);
}

TEST(TcpTransport, APeerThatSendsGarbageIsGoneAndDoesNoHarm) {
  for (int round = 0; round < 50; ++round) {
    auto transport = TcpTransport::listen(options_for(0, 2, Epoch::now()));
    ASSERT_TRUE(transport);
    HandMadePeer peer((*transport)->address(), 1, 1);
    ASSERT_TRUE((*transport)->connect({(*transport)->address(), ""}, soon));
    Rng rng(static_cast<std::uint64_t>(round));
    std::vector<std::byte> garbage(200);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(rng.below(256));
    if (round % 2 == 0) {  // a believable start, lengths out of this world
      ByteWriter out;
      write_envelope(Envelope{.from = 1, .attempt = 1, .run = digest_of("run"), .outline_size = 40}, out);
      std::copy(out.bytes().begin(), out.bytes().end() - 8, garbage.begin());
    }
    peer.raw(garbage);
    EXPECT_EQ(code_of((*transport)->recv(1, 5, soon)), "aborted");
  }
}

}  // namespace
}  // namespace firedrill
