#include "harness/preflight/meeting.h"

namespace firedrill::preflight {

Result<std::unique_ptr<Meeting>> Meeting::of(const Probe& probe) {
  auto meeting = std::make_unique<Meeting>();
  probe.line.doing("listening for the other ranks");
  const std::string address = probe.seams.address ? probe.seams.address(probe.rank) : "127.0.0.1";
  Result<std::unique_ptr<TcpTransport>> transport =
      TcpTransport::listen({.rank = probe.rank,
                            .world_size = probe.ranks,
                            .attempt = 1,
                            .run = digest_of(std::string_view("preflight")),
                            .bind_address = address,
                            .epoch = meeting->epoch_});
  const Json addresses = probe.line.meet(transport ? (*transport)->address() : std::string());
  if (!transport) return std::move(transport).error();
  meeting->real_ = std::move(*transport);
  meeting->transport_ = meeting->real_.get();
  if (probe.seams.transport) {
    meeting->decorated_ = probe.seams.transport(*meeting->real_, probe.rank);
    meeting->transport_ = meeting->decorated_.get();
  }
  probe.line.doing("connecting to the other ranks");
  FD_TRY_VOID(meeting->transport_->connect(addresses.get<std::vector<std::string>>(), meeting->deadline()));
  return meeting;
}

}  // namespace firedrill::preflight
