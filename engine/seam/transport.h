// Transport: Values from one rank to another of the same attempt. Messages of one (peer, tag) arrive in the order sent;
// messages of another attempt are never delivered. Sending does not wait for the receiver.
//
// Every wait takes a deadline. `abort` may be called from any thread or task: all waits end with `aborted`, now and
// later. Errors: dead, fenced, aborted (also when the peer's end is seen closed), timeout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/value.h"
#include "engine/seam/clock.h"

namespace firedrill {

using Tag = std::uint64_t;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // What peers need to reach this rank ("127.0.0.1:40123"); given to them through the store.
  virtual std::string address() const = 0;
  // `addresses[r]` is rank r's; called once, before any send or recv.
  virtual Status connect(const std::vector<std::string>& addresses, Time deadline) = 0;
  virtual Status send(int peer, Tag tag, const Value& value, Time deadline) = 0;
  virtual Result<Value> recv(int peer, Tag tag, Time deadline) = 0;
  virtual void abort(const Error& reason) = 0;
};

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::string address() const override { return inner_.address(); }
  Status connect(const std::vector<std::string>& addresses, Time deadline) override {
    return inner_.connect(addresses, deadline);
  }
  Status send(int peer, Tag tag, const Value& value, Time deadline) override {
    return inner_.send(peer, tag, value, deadline);
  }
  Result<Value> recv(int peer, Tag tag, Time deadline) override { return inner_.recv(peer, tag, deadline); }
  void abort(const Error& reason) override { inner_.abort(reason); }

 protected:
  Transport& inner_;
};

}  // namespace firedrill
