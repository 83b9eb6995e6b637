#include "harness/preflight/delaying_proxy_test.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <deque>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace firedrill::preflight {
namespace {

using std::chrono::steady_clock;

// How long it may take until the end of the proxy is seen.
constexpr std::chrono::milliseconds look_again{20};

Descriptor tcp_socket() {
  Descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  FD_CHECK(made.number() >= 0, "no socket for the proxy");
  return made;
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

sockaddr_in local_port(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool readable(int socket, std::chrono::milliseconds within) {
  pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(within.count())) > 0;
}

struct Chunk {
  steady_clock::time_point due;
  std::string bytes;
};

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

DelayingProxy::DelayingProxy(const std::string& target, std::chrono::milliseconds delay)
    : target_(target), delay_(delay), listener_(tcp_socket()) {
  sockaddr_in address = local_port(0);
  socklen_t size = sizeof address;
  FD_CHECK(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), size) == 0, "the proxy cannot bind");
  FD_CHECK(::listen(listener_.number(), 8) == 0, "the proxy cannot listen");
  ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
  address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  accepting_ = std::jthread([this] { accept_all(); });
}

DelayingProxy::~DelayingProxy() {
  over_ = true;
  accepting_.join();
  for (std::jthread& carrier : carriers_) carrier.join();
}

void DelayingProxy::accept_all() {
  const auto port = static_cast<std::uint16_t>(parse_whole(target_.substr(target_.rfind(':') + 1)).value_or(0));
  const sockaddr_in address = local_port(port);
  while (!over_) {
    if (!readable(listener_.number(), look_again)) continue;
    Descriptor caller(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    Descriptor called = tcp_socket();
    if (::connect(called.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
    for (const int socket : {caller.number(), called.number()}) send_at_once(socket);
    carriers_.emplace_back([this, from = caller.number(), to = called.number()] { carry(from, to); });
    carriers_.emplace_back([this, from = called.number(), to = caller.number()] { carry(from, to); });
    ends_.push_back(std::move(caller));
    ends_.push_back(std::move(called));
  }
}

// Until the sender closes its end, or the proxy ends, and what was sent before has arrived.
void DelayingProxy::carry(int from, int to) const {
  std::deque<Chunk> under_way;
  bool ended = false;
  std::array<char, 65536> buffer{};
  while (!ended || !under_way.empty()) {
    std::chrono::milliseconds within = over_ ? std::chrono::milliseconds(0) : look_again;
    if (!under_way.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(under_way.front().due - steady_clock::now());
      within = std::clamp(left, std::chrono::milliseconds(0), ended ? left : within);
    }
    if (ended) {
      std::this_thread::sleep_for(within);
    } else if (readable(from, within)) {
      const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
      ended = got <= 0;
      if (!ended) {
        under_way.push_back({steady_clock::now() + delay_, std::string(buffer.data(), static_cast<std::size_t>(got))});
      }
    } else {
      ended = over_;
    }
    while (!under_way.empty() && under_way.front().due <= steady_clock::now()) {
      if (!send_all(to, under_way.front().bytes)) return;
      under_way.pop_front();
    }
  }
  ::shutdown(to, SHUT_WR);
}

}  // namespace firedrill::preflight
