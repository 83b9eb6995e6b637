#include "engine/os/tcp_store.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <thread>

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TcpStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = TcpStoreServer::start();
    ASSERT_TRUE(server) << describe(server.error());
    server_ = std::move(*server);
  }
  std::unique_ptr<TcpStore> client() {
    auto store = TcpStore::connect("127.0.0.1", server_->port(), epoch_, abort_);
    if (!store) ADD_FAILURE() << describe(store.error());
    return store ? std::move(*store) : nullptr;
  }
  Epoch epoch_ = Epoch::now();
  AbortSignal abort_;
  std::unique_ptr<TcpStoreServer> server_;
};

TEST_F(TcpStoreTest, WhatOneRankSetsAnotherGets) {
  const auto one = client();
  const auto other = client();
  ASSERT_TRUE(one->set("1/address/0", std::string_view("127.0.0.1:4\0x", 13)));
  const auto got = other->get("1/address/0", epoch_.elapsed() + seconds(10));
  ASSERT_TRUE(got) << describe(got.error());
  EXPECT_EQ(*got, std::string("127.0.0.1:4\0x", 13));
}

TEST_F(TcpStoreTest, AGetWaitsForTheKey) {
  const auto one = client();
  const auto other = client();
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(one->set("late", "here"));
  });
  const auto got = other->get("late", epoch_.elapsed() + seconds(10));
  late.join();
  ASSERT_TRUE(got) << describe(got.error());
  EXPECT_EQ(*got, "here");
}

TEST_F(TcpStoreTest, AddCountsOverAllRanks) {
  const auto one = client();
  const auto other = client();
  EXPECT_EQ(*one->add("count", 2), 2);
  EXPECT_EQ(*other->add("count", 3), 5);
  EXPECT_EQ(*one->add("count", 0), 5);
}

TEST_F(TcpStoreTest, AGetEndsAtItsDeadline) {
  const auto store = client();
  const Time until = epoch_.elapsed() + milliseconds(50);
  EXPECT_TRUE(store->get("never", until).failed_with(Code::timeout));
  EXPECT_GE(epoch_.elapsed(), until);
  EXPECT_LT(epoch_.elapsed(), until + seconds(5));
  EXPECT_TRUE(store->set("still", "works"));
}

TEST_F(TcpStoreTest, AbortEndsAWaitingGetAndLaterCalls) {
  const auto store = client();
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    abort_.raise(Error{.code = Code::aborted, .message = "rank 1 died"});
  });
  const auto got = store->get("never", epoch_.elapsed() + seconds(60));
  other.join();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::aborted);
  EXPECT_EQ(got.error().message, "rank 1 died");
  EXPECT_TRUE(store->set("a", "b").failed_with(Code::aborted));
  EXPECT_TRUE(store->add("a", 1).failed_with(Code::aborted));
}

TEST_F(TcpStoreTest, AServerThatIsGoneIsUnavailable) {
  const auto store = client();
  server_.reset();
  EXPECT_TRUE(store->get("a", epoch_.elapsed() + seconds(5)).failed_with(Code::unavailable));
}

// A regression: with a name server that does not answer, each connection of the store took 5 s.
TEST_F(TcpStoreTest, NoPeerIsLookedUpByName) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::array<char, NI_MAXHOST> host{};
  ASSERT_EQ(::getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof(address), host.data(), host.size(),
                          nullptr, 0, 0),
            0);
  EXPECT_STREQ(host.data(), "127.0.0.1");
  // The library that the store is in finds the same function.
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "getnameinfo"), reinterpret_cast<void*>(&::getnameinfo));
  Dl_info where{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getnameinfo"), &where), 0);
  EXPECT_EQ(std::string(where.dli_fname).find("libc.so"), std::string::npos) << where.dli_fname;
}

TEST_F(TcpStoreTest, AForwardingStoreDoesTheSame) {
  const auto store = client();
  ForwardingStore forwarding(*store);
  ASSERT_TRUE(forwarding.set("key", "value"));
  EXPECT_EQ(*forwarding.get("key", epoch_.elapsed() + seconds(10)), "value");
  EXPECT_EQ(*forwarding.add("sum", 4), 4);
}

}  // namespace
}  // namespace firedrill
