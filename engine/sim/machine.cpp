#include "engine/sim/machine.h"

#include <fmt/format.h>

#include <utility>

#include "engine/sim/rank.h"

namespace firedrill::sim {

Attempt::Attempt(Machine& machine) : machine_(machine), store_(std::make_unique<SimStore>()) {}
Attempt::~Attempt() = default;

void Attempt::reset(const AttemptOptions& options) {
  number_ = options.number;
  ranks_in_use_ = options.node_of_rank.size();
  store_->clear();
  on_rank_end = nullptr;
  takes_message_of = nullptr;
  links_.clear();
  while (ranks_.size() < ranks_in_use_) ranks_.push_back(std::make_unique<SimRank>(*this));
  for (std::size_t i = 0; i < ranks_in_use_; ++i) ranks_[i]->reset(static_cast<int>(i), options.node_of_rank[i]);
}

void Attempt::disturb_link(int from, int to, const LinkFault& fault) { links_[{from, to}] = fault; }

LinkFault* Attempt::link(int from, int to) {
  if (links_.empty()) return nullptr;
  const auto found = links_.find({from, to});
  if (found == links_.end() || machine_.now() >= found->second.until) return nullptr;
  return &found->second;
}

Seams Attempt::seams(int rank) { return this->rank(rank).seams(); }

void Attempt::start(int rank, std::function<void()> rank_main) { this->rank(rank).start(std::move(rank_main)); }

Status Attempt::run(Time limit) {
  FD_CHECK(!Scheduler::handling_exception(), "ranks cannot run while their caller handles an exception");
  while (tasks_alive_ > 0) {
    const RunStop why = machine_.scheduler().run(limit);
    if (why == RunStop::stopped) continue;
    Error error{.code = Code::timeout,
                .message = fmt::format("attempt {} {} at {} ns: {}", number_,
                                       why == RunStop::limit ? "did not end in time" : "is in a deadlock",
                                       machine_.now().count(), machine_.scheduler().describe_waiting())};
    kill_started();
    return error;
  }
  return {};
}

RunStop Attempt::run_until(Time moment) {
  FD_CHECK(!Scheduler::handling_exception(), "ranks cannot run while their caller handles an exception");
  Scheduler& scheduler = machine_.scheduler();
  while (tasks_alive_ > 0) {
    const RunStop why = scheduler.run(moment);
    if (why == RunStop::stopped) continue;
    if (why == RunStop::limit) scheduler.pass_until(moment);
    return why;
  }
  return RunStop::stopped;
}

std::string Attempt::describe_waiting() const { return machine_.scheduler().describe_waiting(); }

void Attempt::kill_started() {
  for (std::size_t i = 0; i < ranks_in_use_; ++i) ranks_[i]->kill();
  while (tasks_alive_ > 0) {
    const RunStop why = machine_.scheduler().run();
    FD_CHECK(why == RunStop::stopped, "{} tasks of attempt {} did not die", tasks_alive_, number_);
  }
}

void Attempt::kill_rank(int rank) {
  SimRank& victim = this->rank(rank);
  if (victim.dead()) return;
  victim.kill();
  const Time told = machine_.now() + machine_.costs().failure_detection;
  const Error reason{.code = Code::aborted, .message = fmt::format("rank {} died", rank)};
  for (std::size_t i = 0; i < ranks_in_use_; ++i) {
    if (!ranks_[i]->dead()) ranks_[i]->abort_at(told, reason);
  }
}

void Attempt::kill_node(int node) {
  for (std::size_t i = 0; i < ranks_in_use_; ++i) {
    if (ranks_[i]->node() == node) kill_rank(static_cast<int>(i));
  }
}

void Attempt::abort(const Error& reason) {
  for (std::size_t i = 0; i < ranks_in_use_; ++i) ranks_[i]->abort_at(machine_.now(), reason);
}

void Attempt::fence() {
  for (std::size_t i = 0; i < ranks_in_use_; ++i) ranks_[i]->fence();
}

RankEnd Attempt::end_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->end(); }
const std::string& Attempt::thrown_by(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->thrown(); }

Machine::Machine(FiberPool& pool) : scheduler_(pool) {
  disk_.clock = [this](int node) { return now() + clock_skew(node); };
}
Machine::~Machine() { kill_all(); }

void Machine::reset(const MachineOptions& options) {
  kill_all();
  for (std::size_t i = 0; i < attempts_in_use_; ++i) attempts_[i]->reset({.number = 0, .node_of_rank = {}});
  attempts_in_use_ = 0;
  serial_ = 0;
  clock_skew_.clear();
  late_.clear();
  options_ = options;
  scheduler_.reset(options.schedule);
  disk_.reset(options.disk);
}

Attempt& Machine::start_attempt(const AttemptOptions& options) {
  if (attempts_in_use_ == attempts_.size()) attempts_.push_back(std::make_unique<Attempt>(*this));
  Attempt& attempt = *attempts_[attempts_in_use_++];
  attempt.reset(options);
  for (const Late& late : std::exchange(late_, {})) {
    if (late.to < attempt.world_size()) {
      attempt.rank(late.to).transport().take_late(late.from, late.sent_in, late.tag, late.value);
    }
  }
  return attempt;
}

void Machine::kill_all() {
  for (std::size_t i = 0; i < attempts_in_use_; ++i) {
    for (std::size_t r = 0; r < attempts_[i]->ranks_in_use_; ++r) attempts_[i]->ranks_[r]->kill();
  }
  for (std::size_t i = 0; i < attempts_in_use_; ++i) attempts_[i]->kill_started();
}

CostedCompute::CostedCompute(Compute& inner, Attempt& attempt, int rank)
    : ForwardingCompute(inner), rank_(attempt.rank(rank)) {}

Result<Value> CostedCompute::run(const Kernel& kernel, std::span<const std::byte> scalars, std::span<Value> inputs) {
  if (!rank_.open()) return rank_.refusal();
  rank_.scheduler().charge_exactly(rank_.costs().of(kernel));
  if (!rank_.open()) return rank_.refusal();
  return inner_.run(kernel, scalars, inputs);
}

}  // namespace firedrill::sim
