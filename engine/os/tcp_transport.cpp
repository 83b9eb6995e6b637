#include "engine/os/tcp_transport.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/os/tcp_connection.h"

namespace firedrill {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

Error aborted_by_peer(int peer, std::string_view why) {
  return Error{.code = Code::aborted, .message = fmt::format("rank {} is gone: {}", peer, why)};
}

Result<tcp::endpoint> endpoint_from(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  const std::uint64_t port = colon == std::string_view::npos ? 0 : parse_whole(address.substr(colon + 1)).value_or(0);
  std::string host(address.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(host, error);
  if (error || port == 0 || port > 65535) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("\"{}\" is not the address of a rank", address),
                 .hint = "give a numeric address and a port, like 127.0.0.1:40123"};
  }
  return tcp::endpoint(ip, static_cast<std::uint16_t>(port));
}

}  // namespace

// The mutex guards the second block. The io_context and all sockets belong to whoever drives.
struct TcpTransport::State {
  explicit State(const TcpTransportOptions& given)
      : options(given),
        work(asio::make_work_guard(io)),
        acceptor(io),
        peers(static_cast<std::size_t>(given.world_size)) {}

  struct Message {
    Value value;
    int sent_in = 0;  // the attempt that it says
    Duration under_way{0};
  };
  struct Taken {
    Tag tag = 0;
    Duration under_way{0};
  };
  struct Peer {
    std::shared_ptr<TcpConnection> connection;
    std::optional<std::string> ended;  // why
    std::map<Tag, std::deque<Message>> inbox;
    std::optional<int> told_of;  // the attempt of the last message told of
    std::optional<Taken> taken;  // the last message
  };

  const TcpTransportOptions options;
  std::string address;
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  tcp::acceptor acceptor;

  std::mutex mutex;
  std::condition_variable changed;
  bool driving = false;
  std::vector<Peer> peers;
  std::optional<Error> aborted;
  std::int64_t foreign_dropped = 0;
  std::function<void(int peer, int sent_in)> tell_first;  // set before there is a second thread

  Envelope envelope(EnvelopeKind kind, Tag tag) const {
    return Envelope{.kind = kind, .from = options.rank, .attempt = options.attempt, .run = options.run, .tag = tag};
  }
  bool is_foreign(const Envelope& theirs) const {
    return theirs.run != options.run || theirs.attempt != options.attempt;
  }
  Peer& peer(int rank) {
    FD_CHECK(rank >= 0 && rank < options.world_size, "rank {} of {}", rank, options.world_size);
    return peers[static_cast<std::size_t>(rank)];
  }

  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, steady_clock::time_point until, Done done);
  void accept_next();
  void connect_to(int rank, const tcp::endpoint& endpoint);
  void greeted(const std::shared_ptr<TcpConnection>& connection, int expected, const Envelope& theirs);
  void deliver(int from, const Envelope& envelope, Value value, std::int64_t arrived);
  void end(int rank, const std::string& why);
};

// Returns true when done(), false at `until`. One waiting thread runs the I/O, the others wait for what it learns.
template <class Done>
bool TcpTransport::State::wait(std::unique_lock<std::mutex>& lock, steady_clock::time_point until, Done done) {
  bool last_look = false;
  while (!done()) {
    if (last_look) return false;
    if (driving) {
      last_look = changed.wait_until(lock, until) == std::cv_status::timeout;
      continue;
    }
    driving = true;
    lock.unlock();
    // Past the deadline, what has arrived already still counts.
    last_look = steady_clock::now() >= until;
    last_look ? io.poll() : io.run_one_until(until);
    lock.lock();
    driving = false;
    changed.notify_all();
  }
  return true;
}

void TcpTransport::State::accept_next() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (error) return;  // closed: the mesh is complete
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto connection = std::make_shared<TcpConnection>(std::move(socket), options.message_bytes_max);
    connection->greet(envelope(EnvelopeKind::hello, 0), false,
                      [this, connection](const std::optional<Envelope>& theirs, const std::string&) {
                        if (theirs) greeted(connection, -1, *theirs);
                      });
    accept_next();
  });
}

void TcpTransport::State::connect_to(int rank, const tcp::endpoint& endpoint) {
  auto socket = std::make_shared<tcp::socket>(io);
  socket->async_connect(endpoint, [this, rank, socket](error_code error) {
    if (error) return end(rank, fmt::format("no connection to it: {}", error.message()));
    error_code ignored;
    socket->set_option(tcp::no_delay(true), ignored);
    auto connection = std::make_shared<TcpConnection>(std::move(*socket), options.message_bytes_max);
    connection->greet(envelope(EnvelopeKind::hello, 0), true,
                      [this, rank, connection](const std::optional<Envelope>& theirs, const std::string& why) {
                        theirs ? greeted(connection, rank, *theirs) : end(rank, why);
                      });
  });
}

// `expected`: whom we connected to; -1: somebody connected to us.
void TcpTransport::State::greeted(const std::shared_ptr<TcpConnection>& connection, int expected,
                                  const Envelope& theirs) {
  const std::lock_guard lock(mutex);
  const bool plausible =
      expected >= 0 ? theirs.from == expected : theirs.from > options.rank && theirs.from < options.world_size;
  if (is_foreign(theirs) || !plausible || peer(theirs.from).connection) {
    ++foreign_dropped;
    if (expected >= 0) peer(expected).ended = "its address answers for another run, attempt or rank";
    return;
  }
  const int from = theirs.from;
  peer(from).connection = connection;
  connection->start(TcpConnection::Handlers{
      .on_message = [this, from](const Envelope& envelope, Value value,
                                 std::int64_t arrived) { deliver(from, envelope, std::move(value), arrived); },
      .on_end = [this, from](const std::string& why) { end(from, why); }});
}

void TcpTransport::State::deliver(int from, const Envelope& envelope, Value value, std::int64_t arrived) {
  const std::lock_guard lock(mutex);
  if (is_foreign(envelope) || envelope.from != from) {
    ++foreign_dropped;
    return;
  }
  // Clocks of two nodes may differ by more than a message takes.
  const Duration under_way{std::max<std::int64_t>(0, arrived - envelope.sent)};
  peer(from).inbox[envelope.tag].push_back(
      {.value = std::move(value), .sent_in = envelope.attempt, .under_way = under_way});
}

void TcpTransport::State::end(int rank, const std::string& why) {
  const std::lock_guard lock(mutex);
  if (!peer(rank).ended) peer(rank).ended = why;
}

TcpTransport::TcpTransport(std::unique_ptr<State> state) : state_(std::move(state)) {}
TcpTransport::~TcpTransport() = default;

Result<std::unique_ptr<TcpTransport>> TcpTransport::listen(const TcpTransportOptions& options) {
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(options.bind_address, error);
  if (error) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("\"{}\" is no address to bind to", options.bind_address),
                 .hint = "give a numeric address of this machine, like 127.0.0.1"};
  }
  auto state = std::make_unique<State>(options);
  const tcp::endpoint any_port(ip, 0);
  state->acceptor.open(any_port.protocol(), error);
  if (!error) state->acceptor.bind(any_port, error);
  if (!error) state->acceptor.listen(asio::socket_base::max_listen_connections, error);
  const tcp::endpoint bound = error ? any_port : state->acceptor.local_endpoint(error);
  if (error) {
    return Error{.code = Code::unavailable,
                 .message = fmt::format("cannot listen at {}: {}", options.bind_address, error.message())};
  }
  state->address = fmt::format("{}:{}", ip.is_v6() ? "[" + ip.to_string() + "]" : ip.to_string(), bound.port());
  return std::unique_ptr<TcpTransport>(new TcpTransport(std::move(state)));
}

int TcpTransport::rank() const { return state_->options.rank; }
int TcpTransport::world_size() const { return state_->options.world_size; }
std::string TcpTransport::address() const { return state_->address; }

Status TcpTransport::connect(const std::vector<std::string>& addresses, Time deadline) {
  State& state = *state_;
  FD_CHECK(static_cast<int>(addresses.size()) == state.options.world_size, "{} addresses of {} ranks", addresses.size(),
           state.options.world_size);
  // Lower ranks are called, higher ones call.
  std::vector<tcp::endpoint> lower;
  for (int rank = 0; rank < state.options.rank; ++rank) {
    FD_TRY(lower.emplace_back(), endpoint_from(addresses[static_cast<std::size_t>(rank)]));
  }
  asio::post(state.io, [&state, lower] {
    state.accept_next();
    for (std::size_t rank = 0; rank < lower.size(); ++rank) state.connect_to(static_cast<int>(rank), lower[rank]);
  });

  std::unique_lock lock(state.mutex);
  std::optional<Error> failed;
  int missing = -1;
  const bool done = state.wait(lock, state.options.epoch.at(deadline), [&] {
    missing = -1;
    for (int rank = 0; rank < state.options.world_size; ++rank) {
      const State::Peer& peer = state.peer(rank);
      if (peer.ended && !failed) failed = aborted_by_peer(rank, *peer.ended);
      if (rank != state.options.rank && !peer.connection) missing = rank;
    }
    return state.aborted || failed || missing < 0;
  });
  if (state.aborted) return *state.aborted;
  if (failed) return *failed;
  if (!done) return Error{.code = Code::timeout, .message = fmt::format("rank {} did not connect in time", missing)};
  asio::post(state.io, [&state] {
    error_code ignored;
    state.acceptor.close(ignored);
  });
  return {};
}

Status TcpTransport::send(int peer, Tag tag, const Value& value, Time deadline) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.aborted) return *state.aborted;
  State::Peer& to = state.peer(peer);
  if (peer == state.options.rank) {
    to.inbox[tag].push_back({.value = value, .sent_in = state.options.attempt});
    state.changed.notify_all();
    return {};
  }
  if (to.ended) return aborted_by_peer(peer, *to.ended);
  FD_CHECK(to.connection != nullptr, "send to rank {} before connect", peer);
  const std::uint64_t bytes = value ? value.bytes_total() : 0;
  if (bytes > state.options.message_bytes_max) {
    return Error{.code = Code::invalid_input,
                 .message = fmt::format("a message of {} bytes to rank {} is larger than {}", bytes, peer,
                                        state.options.message_bytes_max)};
  }
  const auto written = std::make_shared<bool>(false);
  asio::post(state.io, [&state, connection = to.connection, tag, value, written] {
    Envelope envelope = state.envelope(EnvelopeKind::message, tag);
    envelope.sent = steady_now();
    connection->send(envelope, value, [&state, written] {
      const std::lock_guard handler_lock(state.mutex);
      *written = true;
    });
  });
  const bool done = state.wait(lock, state.options.epoch.at(deadline),
                               [&] { return *written || state.aborted.has_value() || to.ended.has_value(); });
  if (state.aborted) return *state.aborted;
  if (*written) return {};
  if (to.ended) return aborted_by_peer(peer, *to.ended);
  FD_CHECK(!done, "a send that ended without a reason");
  return Error{.code = Code::timeout, .message = fmt::format("{} bytes to rank {} were not sent in time", bytes, peer)};
}

Result<Value> TcpTransport::recv(int peer, Tag tag, Time deadline) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  State::Peer& from = state.peer(peer);
  const auto waiting = [&] {
    const auto found = from.inbox.find(tag);
    return found == from.inbox.end() ? nullptr : &found->second;
  };
  const bool done = state.wait(lock, state.options.epoch.at(deadline),
                               [&] { return state.aborted || waiting() != nullptr || from.ended; });
  if (state.aborted) return *state.aborted;
  if (std::deque<State::Message>* messages = waiting()) {
    State::Message message = std::move(messages->front());
    messages->pop_front();
    if (messages->empty()) from.inbox.erase(tag);
    from.taken = {.tag = tag, .under_way = message.under_way};
    const bool first = std::exchange(from.told_of, message.sent_in) != message.sent_in;
    lock.unlock();
    if (first && state.tell_first) state.tell_first(peer, message.sent_in);
    return std::move(message.value);
  }
  if (from.ended) return aborted_by_peer(peer, *from.ended);
  FD_CHECK(!done, "a receive that ended without a reason");
  return Error{.code = Code::timeout, .message = fmt::format("no message {:#x} from rank {} in time", tag, peer)};
}

std::optional<Duration> TcpTransport::under_way(int peer, Tag tag) const {
  const std::lock_guard lock(state_->mutex);
  const std::optional<State::Taken>& taken = state_->peer(peer).taken;
  if (!taken || taken->tag != tag) return std::nullopt;
  return taken->under_way;
}

void TcpTransport::abort(const Error& reason) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (state.aborted) return;
    state.aborted = reason;
    state.aborted->code = Code::aborted;
    // The system call, not the socket's: sockets belong to whoever drives. They are closed only with the transport.
    for (const State::Peer& peer : state.peers) {
      if (peer.connection) ::shutdown(peer.connection->descriptor(), SHUT_RDWR);
    }
  }
  asio::post(state.io, [] {});  // wakes the driver
  state.changed.notify_all();
}

void TcpTransport::tell_first_messages(std::function<void(int peer, int sent_in)> tell) {
  state_->tell_first = std::move(tell);
}

std::int64_t TcpTransport::foreign_dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->foreign_dropped;
}

}  // namespace firedrill
