// TcpConnection: one open connection to a peer, reading and writing whole messages. Driven by the thread that runs the
// io_context; what it learns it tells its owner.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/value_codec.h"
#include "engine/os/stamped_socket.h"
#include "engine/os/tcp_envelope.h"

namespace firedrill {

class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  struct Handlers {
    // `arrived`: when its last bytes came in, in nanoseconds of the steady clock.
    std::function<void(const Envelope&, Value, std::int64_t arrived)> on_message;
    std::function<void(std::string why)> on_end;  // once; no message comes after it
  };

  TcpConnection(Socket socket, std::uint64_t message_bytes_max)
      : stream_(std::move(socket)), message_bytes_max_(message_bytes_max) {}

  // Says hello and waits for the peer's; `done` gets it, or nothing and the reason. The side that connected speaks
  // first.
  void greet(const Envelope& mine, bool first, std::function<void(std::optional<Envelope>, std::string why)> done);
  // Reads messages until the end.
  void start(Handlers handlers);
  // `written` runs when the kernel has all bytes; never if the connection ends before.
  void send(const Envelope& envelope, const Value& value, std::function<void()> written);

  int descriptor() { return stream_.socket().native_handle(); }

 private:
  struct Outgoing {
    std::vector<std::byte> head;  // envelope and outline
    Value value;                  // keeps the buffers
    std::function<void()> written;
  };

  void say_hello(const Envelope& mine, std::function<void(bool)> done);
  void hear_hello(std::function<void(std::optional<Envelope>)> done);
  void write_next();
  void read_envelope_next();
  void read_outline();
  void read_buffers();
  void end(const std::string& why);

  StampedSocket stream_;
  std::uint64_t message_bytes_max_;
  Handlers handlers_;
  bool ended_ = false;

  std::deque<Outgoing> outgoing_;  // the first is being written

  // The message being read.
  std::array<std::byte, envelope_size> envelope_bytes_{};
  Envelope envelope_;
  std::vector<std::byte> outline_;
  std::optional<ValueBuilder> builder_;
};

}  // namespace firedrill
