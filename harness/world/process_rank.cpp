#include "harness/world/process_rank.h"

#include <fmt/format.h>

#include <exception>

#include "engine/base/bytes.h"
#include "engine/data/corpus.h"
#include "engine/model/numerics.h"
#include "engine/os/channel.h"
#include "engine/os/directory_file_system.h"
#include "engine/os/heart.h"
#include "engine/os/process_host.h"
#include "engine/os/pulse_board.h"
#include "engine/os/tcp_store.h"
#include "engine/os/tcp_transport.h"
#include "engine/train/device/job_compute.h"
#include "engine/train/recovery.h"
#include "faults/faulty_input.h"
#include "harness/plan/plan.h"
#include "harness/world/process_task.h"
#include "harness/world/pulsed.h"
#include "harness/world/rank_collectives.h"

namespace firedrill {
namespace {

// The life of this process, from the assignment to the end of the attempt.
class ProcessRank {
 public:
  ProcessRank(const RankAssignment& assignment, const Plan& plan, int rank, int attempt, RankPulse& pulse)
      : assignment_(assignment),
        plan_(plan),
        start_{.attempt = attempt, .rank = rank, .step = 0, .phase = Phase::none},
        clock_(assignment.epoch, abort_),
        host_(node_of(plan.job, rank), assignment.epoch),
        pulse_(pulse) {}

  // Ends when the job is finished, when all ranks leave, or with the error that ended the rank.
  Result<RankResult> run(Channel& channel, TcpTransport& transport, const MutantParts& make);
  void abort(const Error& reason) {
    abort_.raise(reason);
    host_.abort(reason);
  }
  void request_stop() { host_.request_stop(); }

 private:
  Result<RankResult> train(const SharedSeams& seams, const MutantParts& make);
  Result<RankResult> live(const AttemptContext& context, const SharedSeams& seams, Parts& parts);
  const Layout& layout() const { return plan_.layout_if(assignment_.other_layout); }
  Time patience() const {
    return put_off(clock_.now() + plan_.job.cluster.deadline, LivenessLimits::of(plan_.job.cluster).backstop());
  }
  Result<std::unique_ptr<Communicator>> line_of(std::string_view task, const SharedSeams& seams);
  Status connect(TaskParts& parts, const std::vector<NcclGroup>& groups);

  const RankAssignment& assignment_;
  const Plan& plan_;
  Position start_;
  AbortSignal abort_;
  SteadyClock clock_;
  ProcessHost host_;
  RankPulse& pulse_;
};

Result<RankResult> ProcessRank::run(Channel& channel, TcpTransport& transport, const MutantParts& make) {
  ChannelObserver observer(channel, clock_);
  transport.tell_first_messages([&](int peer, int sent_in) {
    emit(observer, start_, {.kind = EventKind::message_taken, .a = peer, .b = sent_in});
  });
  FD_TRY(const std::unique_ptr<TcpStore> store,
         TcpStore::connect("127.0.0.1", assignment_.store_port, assignment_.epoch, abort_));
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, DirectoryFileSystem::open_root(assignment_.disk));
  return train(
      {.files = *files, .transport = transport, .store = *store, .clock = clock_, .host = host_, .observer = observer},
      make);
}

Result<RankResult> ProcessRank::train(const SharedSeams& seams, const MutantParts& make) {
  const Job& job = plan_.job;
  FD_TRY(const Corpus corpus, load_corpus(job.data.corpus));
  if (corpus.digest != assignment_.corpus_digest) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("the corpus {} has changed during the run", job.data.corpus)};
  }
  const CorpusSplit split = split_corpus(corpus, job.data.held_out);
  FD_TRY(const Sampler sampler, Sampler::make(job, split.training.count()));
  const Model model(job);
  const RunIdentity identity = make_run_identity(job, layout(), plan_.run_id, corpus.digest, assignment_.numerics_key);

  FireCounts fired(plan_.faults.size(), assignment_.fired);
  PulsedHost pulsed_host(seams.host, pulse_);
  FD_TRY(std::unique_ptr<Communicator> line, line_of("train", seams));
  TaskParts main(seams, plan_, assignment_, start_, fired, pulse_.main, pulsed_host, false, std::move(line));
  FD_TRY_VOID(connect(main, nccl_groups(job, layout(), start_.rank)));
  CorpusInput text(main.parts().compute, split.training, job.model.sequence);
  FaultyInput input(text, main.injector());
  const SampleDigests digests(split.training, job.model.sequence);
  const std::unique_ptr<Protocol> protocol = make.protocol(plan_.mutant);
  const std::unique_ptr<TrainingRules> rules = make.rules(plan_.mutant);
  AttemptContext context{.job = job,
                         .layout = layout(),
                         .model = model,
                         .sampler = sampler,
                         .text = split.training,
                         .identity = identity,
                         .protocol = *protocol,
                         .attempt = start_.attempt,
                         .floor = assignment_.floor,
                         .stop_requested = [this] { return host_.stop_requested(); },
                         .rules = *rules,
                         .source = {.input = &input, .digests = &digests}};
  if (job.checkpoint.mode == PublishMode::sync) {
    Result<RankResult> ended = run_rank(context, main.parts());
    main.finish(ended.ok());
    return ended;
  }
  FD_TRY(std::unique_ptr<Communicator> line_aside, line_of("publish", seams));
  TaskParts aside(seams, plan_, assignment_, start_, fired, pulse_.aside, seams.host, true, std::move(line_aside));
  FD_TRY_VOID(connect(aside, nccl_publish_group(job, layout(), start_.rank)));
  const std::unique_ptr<AsyncPublisher> publisher = make.publisher(plan_.mutant);
  context.second.emplace(SecondTask{.publisher = *publisher, .parts = aside.parts()});
  Result<RankResult> ended = live(context, seams, main.parts());
  main.finish(ended.ok());
  aside.finish(ended.ok());
  return ended;
}

// NCCL's communicator for a task; none where the ranks talk over TCP.
Result<std::unique_ptr<Communicator>> ProcessRank::line_of(std::string_view task, const SharedSeams& seams) {
  const int gpus = gpus_for(plan_.job);
  const int ranks = layout().world_size();
  FD_TRY(const Wire wire, wire_of(plan_.job, ranks, gpus));
  if (wire == Wire::tcp) return std::unique_ptr<Communicator>();
  const std::string key = fmt::format("attempt/{}/nccl/{}", start_.attempt, task);
  const WaitingFor waiting(pulse_.main, PulseReading::store);
  return nccl_world(seams.store, seams.clock,
                    {.key = key, .rank = start_.rank, .world_size = ranks, .device = start_.rank % gpus}, patience());
}

Status ProcessRank::connect(TaskParts& parts, const std::vector<NcclGroup>& groups) {
  const WaitingFor waiting(pulse_.main, PulseReading::store);
  return parts.connect(groups, patience());
}

// The main task, and behind it the end of the other one: what it waits for is aborted unless all is done, and it is
// gone before anything that it works with is.
Result<RankResult> ProcessRank::live(const AttemptContext& context, const SharedSeams& seams, Parts& parts) {
  const auto end_tasks = [&](const Error& reason) {
    abort(reason);
    seams.transport.abort(reason);
    host_.join_tasks();
  };
  try {
    Result<RankResult> ended = run_rank(context, parts);
    if (ended) {
      host_.join_tasks();
    } else {
      end_tasks(ended.error());
    }
    return ended;
  } catch (const std::exception& failure) {
    end_tasks(Error{.code = Code::aborted, .message = failure.what()});
    throw;
  }
}

RankOutcome outcome_of(const std::function<Result<RankResult>()>& life) {
  try {
    Result<RankResult> result = life();
    if (result) return RankOutcome{.end = *result == RankResult::left ? RankEnd::left : RankEnd::finished};
    const RankEnd end = result.failed_with(Code::internal) ? RankEnd::check_failed : RankEnd::failed;
    return RankOutcome{.end = end, .error = std::move(result).error()};
  } catch (const std::exception& failure) {
    return RankOutcome{.end = RankEnd::check_failed, .error = Error{.code = Code::internal, .message = failure.what()}};
  }
}

}  // namespace

std::string to_payload(const RankAssignment& assignment) {
  ByteWriter out;
  out.text(assignment.plan).number(assignment.floor).number(static_cast<std::uint32_t>(assignment.fired.size()));
  for (const int fired : assignment.fired) out.number(fired);
  out.number(static_cast<std::uint8_t>(assignment.other_layout ? 1 : 0));
  out.number(assignment.epoch.since_boot.count())
      .number(assignment.store_port)
      .text(assignment.disk)
      .text(assignment.pulses);
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
  assignment.other_layout = in.number<std::uint8_t>() != 0;
  assignment.epoch.since_boot = std::chrono::nanoseconds(in.number<std::int64_t>());
  assignment.store_port = in.number<std::uint16_t>();
  assignment.disk = in.text();
  assignment.pulses = in.text();
  assignment.corpus_digest = in.digest();
  assignment.numerics_key = in.text();
  if (!in.ok() || !in.at_end()) {
    return Error{.code = Code::corrupted, .message = "a rank cannot understand its assignment"};
  }
  return assignment;
}

int run_process_rank(RankStart start, const MutantParts& make) {
  Heart::hold_termination();
  // Nothing can be reported before the channel stands; an exception ends the process with a message of the zygote.
  const Result<RankAssignment> assignment = assignment_from(start.payload);
  FD_CHECK(assignment.ok(), "{}", assignment.error().message);
  const Result<Plan> plan = plan_from_json(assignment->plan, "the supervisor");
  FD_CHECK(plan.ok(), "{}", plan.error().message);
  set_numerics(plan->job.numerics);

  const Result<PulsePlace> place = PulsePlace::open(assignment->pulses, start.rank);
  FD_CHECK(place.ok(), "{}", place.error().message);
  ProcessRank rank(*assignment, *plan, start.rank, start.attempt, place->pulse());
  const Result<std::unique_ptr<TcpTransport>> transport =
      TcpTransport::listen({.rank = start.rank,
                            .world_size = plan->layout_if(assignment->other_layout).world_size(),
                            .attempt = start.attempt,
                            .run = digest_of(std::string_view(plan->run_id)),
                            .epoch = assignment->epoch});
  Channel channel(std::move(start.channel), [&](const Command& command) {
    rank.abort(command.reason);
    if (transport) (*transport)->abort(command.reason);
  });
  const Heart heart(
      LivenessLimits::of(plan->job.cluster).period(),
      [&](std::uint64_t beats) { channel.heartbeat(beats, place->pulse().read()); }, [&rank] { rank.request_stop(); });
  const RankOutcome outcome = outcome_of([&]() -> Result<RankResult> {
    if (!transport) return transport.error();
    return rank.run(channel, **transport, make);
  });
  channel.finish(outcome);
  return outcome.end == RankEnd::finished || outcome.end == RankEnd::left ? 0 : 1;
}

}  // namespace firedrill
