#include "harness/world/process_rank.h"

#include <fmt/format.h>

#include <exception>
#include <optional>

#include "engine/base/bytes.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/data/corpus.h"
#include "engine/model/numerics.h"
#include "engine/os/channel.h"
#include "engine/os/directory_file_system.h"
#include "engine/os/process_host.h"
#include "engine/os/tcp_store.h"
#include "engine/os/tcp_transport.h"
#include "engine/train/recovery.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"
#include "harness/plan/plan.h"
#include "harness/world/process_witness.h"

namespace firedrill {
namespace {

// The seams of this process, faults around them, from the assignment to the end of the attempt.
class ProcessRank final : private Effects {
 public:
  ProcessRank(const RankAssignment& assignment, const Plan& plan, int rank, int attempt)
      : assignment_(assignment),
        plan_(plan),
        position_{.attempt = attempt, .rank = rank, .step = 0, .phase = Phase::none},
        clock_(assignment.epoch, abort_),
        host_(node_of(plan.job, rank), assignment.epoch),
        injector_(plan.faults, assignment.fired, position_, *this) {}

  // Ends when the job is finished, or with the error that ended the rank.
  Status run(Channel& channel, Transport& transport, std::unique_ptr<Protocol> protocol);
  void abort(const Error& reason) {
    abort_.raise(reason);
    host_.abort(reason);
  }

 private:
  Status train(FileSystem& files, Transport& transport, Store& store, Protocol& protocol);
  Status journal(const Firing& firing) override;
  void kill_rank() override { host_.kill_self(); }
  void kill_node(bool, bool) override { FD_CHECK(false, "kill_node is not offered in the process world"); }

  const RankAssignment& assignment_;
  const Plan& plan_;
  Position position_;
  AbortSignal abort_;
  SteadyClock clock_;
  ProcessHost host_;
  Injector injector_;
  std::optional<ChannelObserver> observer_;
};

Status ProcessRank::run(Channel& channel, Transport& transport, std::unique_ptr<Protocol> protocol) {
  observer_.emplace(channel, clock_);
  FD_TRY(const std::unique_ptr<TcpStore> store,
         TcpStore::connect("127.0.0.1", assignment_.store_port, assignment_.epoch, abort_));
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, DirectoryFileSystem::open_root(assignment_.disk));
  WitnessFileSystem witness(*files, position_, *observer_);
  return train(witness, transport, *store, *protocol);
}

Status ProcessRank::train(FileSystem& files, Transport& transport, Store& store, Protocol& protocol) {
  const Job& job = plan_.job;
  FD_TRY(const Corpus corpus, load_corpus(job.data.corpus));
  if (corpus.digest != assignment_.corpus_digest) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the corpus {} has changed during the run", job.data.corpus)};
  }
  const CorpusSplit split = split_corpus(corpus, job.data.held_out);
  FD_TRY(const Sampler sampler, Sampler::make(job, split.training.count()));
  const Model model(job);
  const RunIdentity identity =
      make_run_identity(job, plan_.layout, plan_.run_id, corpus.digest, assignment_.numerics_key);

  FaultyFileSystem faulty_files(files, injector_);
  FaultyTransport faulty_transport(transport, injector_);
  FaultyStore faulty_store(store, injector_);
  DirectCompute direct;
  FaultyCompute faulty_compute(direct, injector_);
  TransportCollectives collectives(faulty_transport, faulty_compute, position_, *observer_);
  FaultyCollectives faulty_collectives(collectives, injector_);
  Parts parts{.files = faulty_files,
              .transport = faulty_transport,
              .collectives = faulty_collectives,
              .store = faulty_store,
              .compute = faulty_compute,
              .clock = clock_,
              .host = host_,
              .observer = *observer_,
              .position = position_};
  return run_rank(AttemptContext{.job = job,
                                 .layout = plan_.layout,
                                 .model = model,
                                 .sampler = sampler,
                                 .text = split.training,
                                 .identity = identity,
                                 .protocol = protocol,
                                 .attempt = position_.attempt,
                                 .floor = assignment_.floor},
                  parts);
}

// On record when it returns: the supervisor has answered.
Status ProcessRank::journal(const Firing& firing) {
  observer_->event_answered(Event{.kind = EventKind::fault_fired,
                                  .phase = position_.phase,
                                  .rank = static_cast<std::int16_t>(position_.rank),
                                  .attempt = position_.attempt,
                                  .step = position_.step,
                                  .a = firing.fault,
                                  .name = observer_->intern(describe(firing.spec))});
  return {};
}

RankOutcome outcome_of(const std::function<Status()>& life) {
  try {
    Status status = life();
    if (status) return RankOutcome{.end = RankEnd::finished};
    const RankEnd end = status.failed_with(Code::internal) ? RankEnd::check_failed : RankEnd::failed;
    return RankOutcome{.end = end, .error = std::move(status).error()};
  } catch (const std::exception& failure) {
    return RankOutcome{.end = RankEnd::check_failed, .error = Error{.code = Code::internal, .message = failure.what()}};
  }
}

}  // namespace

std::string to_payload(const RankAssignment& assignment) {
  ByteWriter out;
  out.text(assignment.plan).number(assignment.floor).number(static_cast<std::uint32_t>(assignment.fired.size()));
  for (const int fired : assignment.fired) out.number(fired);
  out.number(assignment.epoch.since_boot.count()).number(assignment.store_port).text(assignment.disk);
  out.digest(assignment.corpus_digest).text(assignment.numerics_key);
  return std::string(reinterpret_cast<const char*>(out.bytes().data()), out.size());
}

Result<RankAssignment> assignment_from(std::string_view payload) {
  ByteReader in(std::as_bytes(std::span(payload)));
  RankAssignment assignment;
  assignment.plan = in.text();
  assignment.floor = in.number<std::int64_t>();
  for (auto left = in.number<std::uint32_t>(); left > 0 && in.ok(); --left) {
    assignment.fired.push_back(in.number<int>());
  }
  assignment.epoch.since_boot = std::chrono::nanoseconds(in.number<std::int64_t>());
  assignment.store_port = in.number<std::uint16_t>();
  assignment.disk = in.text();
  assignment.corpus_digest = in.digest();
  assignment.numerics_key = in.text();
  if (!in.ok() || !in.at_end()) {
    return Error{.code = Code::corrupted, .message = "a rank cannot understand its assignment"};
  }
  return assignment;
}

int run_process_rank(RankStart start, std::unique_ptr<Protocol> (*make_protocol)(std::string_view mutant)) {
  // Nothing can be reported before the channel stands; an exception ends the process with a message of the zygote.
  const Result<RankAssignment> assignment = assignment_from(start.payload);
  FD_CHECK(assignment.ok(), "{}", assignment.error().message);
  const Result<Plan> plan = plan_from_json(assignment->plan, "the supervisor");
  FD_CHECK(plan.ok(), "{}", plan.error().message);
  set_numerics(plan->job.numerics);

  ProcessRank rank(*assignment, *plan, start.rank, start.attempt);
  const Result<std::unique_ptr<TcpTransport>> transport =
      TcpTransport::listen({.rank = start.rank,
                            .world_size = plan->layout.world_size(),
                            .attempt = start.attempt,
                            .run = digest_of(std::string_view(plan->run_id)),
                            .epoch = assignment->epoch});
  Channel channel(std::move(start.channel), [&](const Command& command) {
    rank.abort(command.reason);
    if (transport) (*transport)->abort(command.reason);
  });
  const RankOutcome outcome = outcome_of([&]() -> Status {
    if (!transport) return transport.error();
    return rank.run(channel, **transport, make_protocol(plan->mutant));
  });
  channel.finish(outcome);
  return outcome.end == RankEnd::finished ? 0 : 1;
}

}  // namespace firedrill
