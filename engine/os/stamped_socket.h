// StampedSocket: the reading side of a TCP socket that also tells when the bytes came in: when the kernel took them
// from the network, not when this process came to read them. On a busy machine, or while a rank computes, these are
// milliseconds apart, and only the first says anything about the link.
//
// A stream to read from for Boost.Asio (async_read_some). The stamp is the kernel's receive time of the last bytes read
// (SO_TIMESTAMPNS; socket(7)); where the kernel joined them with later ones, of those; where it gives none, the time of
// reading.
//
// Threads: as of the socket.
#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace firedrill {

class StampedSocket {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  explicit StampedSocket(Socket socket);

  Socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }
  // When what was read last came in, in nanoseconds of the steady clock.
  std::int64_t arrived() const { return arrived_; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (const std::optional<Read> read = read_now(buffers)) {
      boost::asio::post(get_executor(), [read = *read, handler = std::forward<Handler>(handler)]() mutable {
        std::move(handler)(read.error, read.bytes);
      });
      return;
    }
    socket_.async_wait(Socket::wait_read, [this, buffers, handler = std::forward<Handler>(handler)](
                                              boost::system::error_code error) mutable {
      if (error) return std::move(handler)(error, std::size_t{0});
      async_read_some(buffers, std::move(handler));
    });
  }

 private:
  struct Read {
    boost::system::error_code error;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t parts_max = 16;  // of one read; the next one takes what lies behind

  template <class Buffers>
  std::optional<Read> read_now(const Buffers& buffers) {
    std::array<iovec, parts_max> parts{};
    std::size_t count = 0;
    for (auto at = boost::asio::buffer_sequence_begin(buffers);
         at != boost::asio::buffer_sequence_end(buffers) && count < parts_max; ++at) {
      const boost::asio::mutable_buffer part(*at);
      if (part.size() > 0) parts[count++] = {.iov_base = part.data(), .iov_len = part.size()};
    }
    return read_into({parts.data(), count});
  }
  // Nothing: nothing is there yet.
  std::optional<Read> read_into(std::span<iovec> parts);

  Socket socket_;
  std::int64_t arrived_ = 0;
};

}  // namespace firedrill
