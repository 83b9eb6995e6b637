#include "engine/os/tcp_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace firedrill {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

asio::mutable_buffer writable(std::span<std::byte> bytes) { return asio::buffer(bytes.data(), bytes.size()); }
asio::const_buffer readable(std::span<const std::byte> bytes) { return asio::buffer(bytes.data(), bytes.size()); }

}  // namespace

void TcpConnection::greet(const Envelope& mine, bool first,
                          std::function<void(std::optional<Envelope>, std::string why)> done) {
  const auto gone = [done] { done(std::nullopt, "the connection ended before the peer said who it is"); };
  if (first) {
    say_hello(mine, [this, done, gone](bool said) {
      if (!said) return gone();
      hear_hello([done](std::optional<Envelope> theirs) { done(theirs, "the peer refused the connection"); });
    });
    return;
  }
  hear_hello([this, mine, done, gone](std::optional<Envelope> theirs) {
    if (!theirs) return gone();
    // One of another run or attempt gets no answer: it must not believe that it is connected.
    if (theirs->run != mine.run || theirs->attempt != mine.attempt) return done(theirs, "");
    say_hello(mine, [theirs, done, gone](bool said) { said ? done(theirs, "") : gone(); });
  });
}

void TcpConnection::say_hello(const Envelope& mine, std::function<void(bool)> done) {
  ByteWriter out;
  write_envelope(mine, out);
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(out).take());
  asio::async_write(stream_.socket(), readable(*bytes),
                    [self = shared_from_this(), bytes, done](error_code error, std::size_t) { done(!error); });
}

void TcpConnection::hear_hello(std::function<void(std::optional<Envelope>)> done) {
  asio::async_read(stream_, writable(envelope_bytes_),
                   [self = shared_from_this(), done](error_code error, std::size_t) {
                     const std::optional<Envelope> theirs = read_envelope(self->envelope_bytes_);
                     const bool heard = !error && theirs && theirs->kind == EnvelopeKind::hello;
                     done(heard ? theirs : std::nullopt);
                   });
}

void TcpConnection::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  read_envelope_next();
}

void TcpConnection::send(const Envelope& envelope, const Value& value, std::function<void()> written) {
  if (ended_) return;
  const std::vector<std::byte> outline = outline_of(value);
  Envelope full = envelope;
  full.outline_size = static_cast<std::uint32_t>(outline.size());
  full.bytes = value ? value.bytes_total() : 0;
  ByteWriter head;
  write_envelope(full, head);
  head.raw(outline);
  outgoing_.push_back(Outgoing{.head = std::move(head).take(), .value = value, .written = std::move(written)});
  if (outgoing_.size() == 1) write_next();
}

void TcpConnection::write_next() {
  const Outgoing& next = outgoing_.front();
  std::vector<asio::const_buffer> buffers = {readable(next.head)};
  for (const std::span<const std::byte> buffer : buffers_of(next.value)) buffers.push_back(readable(buffer));
  asio::async_write(stream_.socket(), buffers, [self = shared_from_this()](error_code error, std::size_t) {
    if (self->ended_) return;
    // What the peer sent before it left is still to be read; the reading side finds the end.
    if (error) return;
    const std::function<void()> written = std::move(self->outgoing_.front().written);
    self->outgoing_.pop_front();
    if (!self->outgoing_.empty()) self->write_next();
    written();
  });
}

void TcpConnection::read_envelope_next() {
  asio::async_read(stream_, writable(envelope_bytes_), [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->end(error == asio::error::eof ? "it closed the connection" : error.message());
    const std::optional<Envelope> envelope = read_envelope(self->envelope_bytes_);
    if (!envelope || envelope->kind != EnvelopeKind::message) return self->end("it sent what is no message");
    if (envelope->outline_size > outline_bytes_max || envelope->bytes > self->message_bytes_max_) {
      return self->end(fmt::format("it announced a message of {} bytes", envelope->bytes));
    }
    self->envelope_ = *envelope;
    self->read_outline();
  });
}

void TcpConnection::read_outline() {
  outline_.resize(envelope_.outline_size);
  asio::async_read(stream_, writable(outline_), [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->end("it closed the connection inside a message");
    Result<ValueBuilder> builder = ValueBuilder::from_outline(self->outline_, self->envelope_.bytes);
    if (!builder) return self->end(builder.error().message);
    if (builder->bytes_total() != self->envelope_.bytes)
      return self->end("it sent a message of another length than said");
    self->builder_ = std::move(*builder);
    self->read_buffers();
  });
}

void TcpConnection::read_buffers() {
  std::vector<asio::mutable_buffer> buffers;
  for (const std::span<std::byte> buffer : builder_->buffers()) buffers.push_back(writable(buffer));
  asio::async_read(stream_, buffers, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->end("it closed the connection inside a message");
    Value value = std::move(*self->builder_).finish();
    self->builder_.reset();
    self->handlers_.on_message(self->envelope_, std::move(value), self->stream_.arrived());
    self->read_envelope_next();
  });
}

void TcpConnection::end(const std::string& why) {
  if (ended_) return;
  ended_ = true;
  outgoing_.clear();
  handlers_.on_end(why);
}

}  // namespace firedrill
