#include "harness/world/process_rank.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <exception>

#include "engine/base/bytes.h"
#include "engine/comm/accounting.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/digested_transport.h"
#include "engine/comm/guard.h"
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
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_input.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"
#include "harness/plan/plan.h"
#include "harness/world/process_witness.h"
#include "harness/world/pulsed.h"

namespace firedrill {
namespace {

// The seams of this process, as both tasks of the rank share them.
struct SharedSeams {
  DirectoryFileSystem& files;
  Transport& transport;
  Store& store;
  Clock& clock;
  ProcessHost& host;
  ChannelObserver& observer;
  Compute& compute;
};

// What one task of the rank works with: its place in its work, and decorators of its own around the seams.
class TaskParts final : private Effects {
 public:
  TaskParts(const SharedSeams& seams, const Plan& plan, const RankAssignment& assignment, const Position& start,
            FireCounts& fired, Pulse& pulse, Host& host, bool aside)
      : seams_(seams),
        position_(start),
        injector_(plan.faults, assignment.fired, position_, *this, &fired, &pulse),
        witness_(seams.files, position_, seams.observer, pulse),
        files_(witness_, injector_),
        pulsed_transport_(seams.transport, pulse, LivenessLimits::of(plan.job.cluster).backstop()),
        transport_(pulsed_transport_, injector_),
        digested_(transport_),
        digests_(plan.layout_if(assignment.other_layout).guard == Guard::check),
        pulsed_store_(seams.store, pulse, LivenessLimits::of(plan.job.cluster).backstop()),
        store_(pulsed_store_, injector_),
        compute_(seams.compute, injector_),
        account_(plan.accounting ? std::make_unique<Account>(seams.clock, position_, seams.observer, aside) : nullptr),
        accounted_transport_(account_ ? std::make_unique<AccountingTransport>(messages(), *account_) : nullptr),
        noted_(accounted_transport_ ? static_cast<Transport&>(*accounted_transport_) : messages()),
        plain_collectives_(noted_, compute_, position_, seams.observer),
        guard_(make_guard(plan.layout_if(assignment.other_layout).guard)),
        collectives_(guard_ ? static_cast<Collectives&>(*guard_) : plain_collectives_, injector_),
        accounted_collectives_(account_ ? std::make_unique<AccountingCollectives>(collectives_, *account_) : nullptr),
        parts_{
            .files = files_,
            .transport = messages(),
            .collectives = accounted_collectives_ ? static_cast<Collectives&>(*accounted_collectives_) : collectives_,
            .store = store_,
            .compute = compute_,
            .clock = seams.clock,
            .host = host,
            .observer = seams.observer,
            .position = position_} {}

  Parts& parts() { return parts_; }
  Injector& injector() { return injector_; }
  // Its work is over: what the account and the guard have to say of that.
  void finish(bool well) {
    if (account_) account_->close();
    if (guard_) guard_->finish(well);
  }

 private:
  std::unique_ptr<GuardedCollectives> make_guard(Guard mode) {
    if (mode == Guard::off) return nullptr;
    return std::make_unique<GuardedCollectives>(
        plain_collectives_, mode,
        GuardedCollectives::Parties{.position = position_, .observer = seams_.observer, .waits = noted_});
  }
  // On record when it returns: the supervisor has answered.
  Status journal(const Firing& firing) override {
    seams_.observer.event_answered(Event{.kind = EventKind::fault_fired,
                                         .phase = position_.phase,
                                         .rank = static_cast<std::int16_t>(position_.rank),
                                         .attempt = position_.attempt,
                                         .step = position_.step,
                                         .a = firing.fault,
                                         .b = operation_number(firing.call),
                                         .name = seams_.observer.intern(describe(firing.spec)),
                                         .detail = seams_.observer.intern(words_of(firing.call))});
    return {};
  }
  Transport& messages() { return digests_ ? static_cast<Transport&>(digested_) : transport_; }
  void kill_rank() override { seams_.host.kill_self(); }
  void hang_rank() override {
    ::kill(::getpid(), SIGSTOP);
    stall_task();  // the stop may reach another thread first
  }
  void stall_task() override {
    for (;;) ::pause();
  }
  void preempt_rank() override { ::kill(::getpid(), SIGTERM); }
  void exit_rank(int code) override { ::_exit(code); }
  void kill_node(bool, bool) override { not_offered("kill_node"); }
  FileSystem& storage() override { return seams_.files; }
  Status overwrite(std::string_view path, std::int64_t offset, const Value& bytes) override {
    return seams_.files.overwrite(path, offset, bytes);
  }
  void forget_unsynced(FileOp, std::string_view) override {}
  void skew_clock(Duration) override { not_offered("clock_skew"); }
  std::vector<int> others_in(std::string_view) override { not_offered("a fault of links"); }
  std::vector<int> node_ranks() override { not_offered("a fault of links"); }
  void trouble_link(int, int, const LinkTrouble&) override { not_offered("a fault of links"); }
  void send_late(int, Tag, const Value&) override { not_offered("late_message"); }
  Time now() override { return seams_.clock.now(); }
  Status sleep_until(Time time) override { return seams_.clock.sleep_until(time); }

  [[noreturn]] static void not_offered(const char* what) {
    fail_check(__FILE__, __LINE__, what, "a fault that the process world does not offer");
  }

  SharedSeams seams_;
  Position position_;
  Injector injector_;
  WitnessFileSystem witness_;
  FaultyFileSystem files_;
  PulsedTransport pulsed_transport_;
  FaultyTransport transport_;
  DigestedTransport digested_;
  bool digests_;  // messages go through it
  PulsedStore pulsed_store_;
  FaultyStore store_;
  FaultyCompute compute_;
  std::unique_ptr<Account> account_;  // none: nobody asked; so with what belongs to it
  std::unique_ptr<AccountingTransport> accounted_transport_;
  NotedTransport noted_;
  TransportCollectives plain_collectives_;
  std::unique_ptr<GuardedCollectives> guard_;  // with layout.guard off: none
  FaultyCollectives collectives_;
  std::unique_ptr<AccountingCollectives> accounted_collectives_;
  Parts parts_;
};

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
  Result<RankResult> run(Channel& channel, Transport& transport, const MutantParts& make);
  void abort(const Error& reason) {
    abort_.raise(reason);
    host_.abort(reason);
  }
  void request_stop() { host_.request_stop(); }

 private:
  Result<RankResult> train(const SharedSeams& seams, const MutantParts& make);
  Result<RankResult> live(const AttemptContext& context, const SharedSeams& seams, Parts& parts);

  const RankAssignment& assignment_;
  const Plan& plan_;
  Position start_;
  AbortSignal abort_;
  SteadyClock clock_;
  ProcessHost host_;
  RankPulse& pulse_;
};

Result<RankResult> ProcessRank::run(Channel& channel, Transport& transport, const MutantParts& make) {
  ChannelObserver observer(channel, clock_);
  FD_TRY(const std::unique_ptr<TcpStore> store,
         TcpStore::connect("127.0.0.1", assignment_.store_port, assignment_.epoch, abort_));
  FD_TRY(const std::unique_ptr<DirectoryFileSystem> files, DirectoryFileSystem::open_root(assignment_.disk));
  JobCompute kernels(plan_.job, start_.rank);
  return train({.files = *files,
                .transport = transport,
                .store = *store,
                .clock = clock_,
                .host = host_,
                .observer = observer,
                .compute = kernels},
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
  const Layout& layout = plan_.layout_if(assignment_.other_layout);
  const RunIdentity identity = make_run_identity(job, layout, plan_.run_id, corpus.digest, assignment_.numerics_key);

  FireCounts fired(plan_.faults.size(), assignment_.fired);
  PulsedHost pulsed_host(seams.host, pulse_);
  TaskParts main(seams, plan_, assignment_, start_, fired, pulse_.main, pulsed_host, false);
  CorpusInput text(main.parts().compute, split.training, job.model.sequence);
  FaultyInput input(text, main.injector());
  const SampleDigests digests(split.training, job.model.sequence);
  const std::unique_ptr<Protocol> protocol = make.protocol(plan_.mutant);
  const std::unique_ptr<TrainingRules> rules = make.rules(plan_.mutant);
  AttemptContext context{.job = job,
                         .layout = layout,
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
  TaskParts aside(seams, plan_, assignment_, start_, fired, pulse_.aside, seams.host, true);
  const std::unique_ptr<AsyncPublisher> publisher = make.publisher(plan_.mutant);
  context.second.emplace(SecondTask{.publisher = *publisher, .parts = aside.parts()});
  Result<RankResult> ended = live(context, seams, main.parts());
  main.finish(ended.ok());
  aside.finish(ended.ok());
  return ended;
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
