// One task of a rank of the process world: the composition root of its seams, with the faults, the guard and the
// accounts around them. The rank's main task has one, and with asynchronous publishes the second task another.
//
// Threads: that of its task.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/comm/accounting.h"
#include "engine/comm/collectives_over_transport.h"
#include "engine/comm/digested_transport.h"
#include "engine/comm/guard.h"
#include "engine/os/channel.h"
#include "engine/os/directory_file_system.h"
#include "engine/os/process_host.h"
#include "engine/os/tcp_transport.h"
#include "engine/seam/parts.h"
#include "engine/train/device/job_compute.h"
#include "faults/faulty_collectives.h"
#include "faults/faulty_compute.h"
#include "faults/faulty_file_system.h"
#include "faults/faulty_store.h"
#include "faults/faulty_transport.h"
#include "harness/plan/plan.h"
#include "harness/world/process_rank.h"
#include "harness/world/process_witness.h"
#include "harness/world/pulsed.h"
#include "harness/world/rank_collectives.h"

namespace firedrill {

// The seams of this process, as both tasks of the rank share them.
struct SharedSeams {
  DirectoryFileSystem& files;
  TcpTransport& transport;
  Store& store;
  Clock& clock;
  ProcessHost& host;
  ChannelObserver& observer;
};

// What one task of the rank works with: its place in its work, its compute, and decorators of its own around the seams.
// With `line`, NCCL's communicator of this task, collectives go over that, and not over the transport.
class TaskParts final : private Effects {
 public:
  TaskParts(const SharedSeams& seams, const Plan& plan, const RankAssignment& assignment, const Position& start,
            FireCounts& fired, Pulse& pulse, Host& host, bool aside, std::unique_ptr<Communicator> line)
      : seams_(seams),
        position_(start),
        kernels_(plan.job, start.rank),
        injector_(plan.faults, assignment.fired, position_, *this, &fired, &pulse),
        witness_(seams.files, position_, seams.observer, pulse),
        files_(witness_, injector_),
        pulsed_transport_(seams.transport, pulse, LivenessLimits::of(plan.job.cluster).backstop()),
        transport_(pulsed_transport_, injector_),
        digested_(transport_),
        digests_(plan.layout_if(assignment.other_layout).guard == Guard::check),
        pulsed_store_(seams.store, pulse, LivenessLimits::of(plan.job.cluster).backstop()),
        store_(pulsed_store_, injector_),
        compute_(kernels_, injector_),
        account_(plan.accounting ? std::make_unique<Account>(seams.clock, position_, seams.observer, aside) : nullptr),
        accounted_transport_(account_ ? std::make_unique<AccountingTransport>(messages(), *account_, &seams.transport)
                                      : nullptr),
        noted_(accounted_transport_ ? static_cast<Transport&>(*accounted_transport_) : messages()),
        over_transport_(noted_, compute_, position_, seams.observer),
        nccl_(line ? std::make_unique<NcclCollectives>(std::move(line), compute_,
                                                       NcclOptions{.native = plan.job.collectives == Reduction::native})
                   : nullptr),
        pulsed_nccl_(
            nccl_ ? std::make_unique<PulsedCollectives>(*nccl_, pulse, LivenessLimits::of(plan.job.cluster).backstop())
                  : nullptr),
        guard_(make_guard(plan.layout_if(assignment.other_layout).guard)),
        collectives_(guard_ ? static_cast<Collectives&>(*guard_) : plain_collectives(), injector_),
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
  // Where there is a line: connects these groups over it. All ranks do so at the same place.
  Status connect(const std::vector<NcclGroup>& groups, Time deadline) {
    return nccl_ ? nccl_->connect(groups, deadline) : Status();
  }
  // Its work is over: what the account and the guard have to say of that.
  void finish(bool well) {
    if (account_) account_->close();
    if (guard_) guard_->finish(well);
  }

 private:
  std::unique_ptr<GuardedCollectives> make_guard(Guard mode) {
    if (mode == Guard::off) return nullptr;
    return std::make_unique<GuardedCollectives>(
        plain_collectives(), mode,
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
  Collectives& plain_collectives() { return pulsed_nccl_ ? static_cast<Collectives&>(*pulsed_nccl_) : over_transport_; }
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
  JobCompute kernels_;
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
  TransportCollectives over_transport_;
  std::unique_ptr<NcclCollectives> nccl_;  // with a line; so with what is around it
  std::unique_ptr<PulsedCollectives> pulsed_nccl_;
  std::unique_ptr<GuardedCollectives> guard_;  // with layout.guard off: none
  FaultyCollectives collectives_;
  std::unique_ptr<AccountingCollectives> accounted_collectives_;
  Parts parts_;
};

}  // namespace firedrill
