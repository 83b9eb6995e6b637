// The only file that includes c10d.
#include "engine/os/tcp_store.h"

#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "engine/base/check.h"

namespace firedrill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds answer_patience{10'000};
constexpr milliseconds abort_patience{100};  // a get looks at the signal this often

// What a c10 exception says, without the stack that follows its first line.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Runs a call of c10d, whose errors are exceptions.
template <class Call>
auto guarded(std::string_view what, Call call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& error) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("store: {}: {}", what, first_line(error)),
                 .hint = "the supervisor's store may be gone",
                 .retryable = true};
  }
}

Result<c10::intrusive_ptr<c10d::TCPStore>> make_store(const std::string& host, std::uint16_t port, bool server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = answer_patience;
  return guarded(fmt::format("{} {}:{}", server ? "serving at" : "connecting to", host, port),
                 [&] { return c10::make_intrusive<c10d::TCPStore>(host, options); });
}

}  // namespace

struct TcpStoreServer::State {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

TcpStoreServer::TcpStoreServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
TcpStoreServer::~TcpStoreServer() = default;

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::start() {
  FD_TRY(auto store, make_store("127.0.0.1", 0, true));
  return std::unique_ptr<TcpStoreServer>(new TcpStoreServer(std::make_unique<State>(std::move(store))));
}

std::uint16_t TcpStoreServer::port() const { return state_->store->getPort(); }

struct TcpStore::State {
  c10::intrusive_ptr<c10d::TCPStore> store;
  Epoch epoch;
  AbortSignal& abort;
};

TcpStore::TcpStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
TcpStore::~TcpStore() = default;

Result<std::unique_ptr<TcpStore>> TcpStore::connect(const std::string& host, std::uint16_t port, Epoch epoch,
                                                    AbortSignal& abort) {
  FD_TRY(auto store, make_store(host, port, false));
  return std::unique_ptr<TcpStore>(new TcpStore(std::make_unique<State>(std::move(store), epoch, abort)));
}

Status TcpStore::set(std::string_view key, std::string_view value) {
  if (state_->abort.raised()) return state_->abort.reason();
  auto done = guarded(fmt::format("set {}", key), [&] {
    state_->store->set(std::string(key), std::vector<std::uint8_t>(value.begin(), value.end()));
    return true;
  });
  return done ? Status() : Status(std::move(done).error());
}

// Waits in short turns, because c10d's own wait cannot be ended from outside, and asks with check between them, because
// its waits end by an exception that costs more than a question.
Result<std::string> TcpStore::get(std::string_view key, Time deadline) {
  const std::vector<std::string> keys = {std::string(key)};
  const steady_clock::time_point until = state_->epoch.at(deadline);
  const std::string what = fmt::format("get {}", key);
  milliseconds pause{1};
  for (;;) {
    if (state_->abort.raised()) return state_->abort.reason();
    FD_TRY(const bool there, guarded(what, [&] { return state_->store->check(keys); }));
    if (there) break;
    const steady_clock::time_point now = steady_clock::now();
    if (now >= until) return Error{.code = Code::timeout, .message = fmt::format("store: no key {} in time", key)};
    FD_TRY_VOID(state_->abort.sleep_until(std::min(until, now + pause)));
    pause = std::min(pause * 2, abort_patience);
  }
  FD_TRY(const std::vector<std::uint8_t> bytes, guarded(what, [&] { return state_->store->get(keys.front()); }));
  return std::string(bytes.begin(), bytes.end());
}

Result<std::int64_t> TcpStore::add(std::string_view key, std::int64_t amount) {
  if (state_->abort.raised()) return state_->abort.reason();
  return guarded(fmt::format("add to {}", key), [&] { return state_->store->add(std::string(key), amount); });
}

}  // namespace firedrill

// c10d asks the resolver for the name of every peer, only to write it into its log. For a loopback address behind a
// name server that does not answer that takes 5 s for each connection. This definition stands before the C library's in
// the whole program and lets no call look up a name: hosts come as numbers.
extern "C" int getnameinfo(const sockaddr* address, socklen_t address_size, char* host, socklen_t host_size,
                           char* service, socklen_t service_size, int flags) {
  static const auto of_the_library = reinterpret_cast<decltype(&getnameinfo)>(::dlsym(RTLD_NEXT, "getnameinfo"));
  return of_the_library(address, address_size, host, host_size, service, service_size, flags | NI_NUMERICHOST);
}
