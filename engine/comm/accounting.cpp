#include "engine/comm/accounting.h"

#include <algorithm>
#include <string>
#include <utility>

namespace firedrill {
namespace {

constexpr std::array<std::string_view, 8> call_names = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                        "barrier",    "all_to_all",     "send",       "recv"};

// A reduction on its way: what it still takes counts for the call that began it.
class AccountedReduction final : public PendingReduction {
 public:
  AccountedReduction(std::unique_ptr<PendingReduction> inner, Account& account, Account::Entry entry)
      : inner_(std::move(inner)), account_(account), entry_(entry) {}
  Status advance() override {
    const Account::Scope scope(account_, entry_);
    return inner_->advance();
  }
  Result<Value> finish() override {
    const Account::Scope scope(account_, entry_);
    return inner_->finish();
  }

 private:
  std::unique_ptr<PendingReduction> inner_;
  Account& account_;
  Account::Entry entry_;
};

std::int64_t bytes_of(const Value& value) { return value ? static_cast<std::int64_t>(value.bytes_total()) : 0; }

// Nearest rank; `times` is not empty and is left in another order.
Duration lower_quartile(std::vector<Duration>& times) {
  const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() + 3) / 4 - 1);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

// Makes the call with its account open.
template <class Inner>
auto accounted(Account& account, const Group& group, CallKind kind, Inner&& inner) -> decltype(inner()) {
  const Account::Entry entry = account.entry(group, kind);
  account.count_call(entry);
  const Account::Scope scope(account, entry);
  return inner();
}

template <class Inner>
Result<std::unique_ptr<PendingReduction>> started(Account& account, const Group& group, CallKind kind, Inner&& inner) {
  FD_TRY(std::unique_ptr<PendingReduction> pending, accounted(account, group, kind, inner));
  const Account::Entry entry = account.entry(group, kind);
  return Result<std::unique_ptr<PendingReduction>>(
      std::make_unique<AccountedReduction>(std::move(pending), account, entry));
}

}  // namespace

std::string_view to_string(CallKind kind) { return call_names[static_cast<std::size_t>(kind)]; }

Account::Account(const Clock& clock, Position& position, Observer& observer, bool idles)
    : clock_(clock), position_(position), observer_(observer), idles_(idles), step_(position.step), mark_(clock.now()) {
  position_.listener = this;
}

void Account::book() {
  const Time now = clock_.now();
  Spent& spent = of(position_.phase);
  spent.time += now - mark_;
  if (position_.phase == Phase::forward && !std::exchange(ran_forward_, true)) forward_began_ = mark_;
  if (position_.phase == Phase::backward) backward_ended_ = now;
  mark_ = now;
}

void Account::phase_ends() {
  book();
  if (position_.step != step_) tell();
}

void Account::close() {
  book();
  tell();
}

Account::Entry Account::entry(const Group& group, CallKind kind) {
  for (Entry i = 0; i < exchanges_.size(); ++i) {
    if (exchanges_[i].group == group.id && exchanges_[i].kind == kind) return i;
  }
  exchanges_.push_back({.group = group.id,
                        .kind = kind,
                        .name = observer_.intern(group.name),
                        .operation = observer_.intern(to_string(kind))});
  return exchanges_.size() - 1;
}

Account::Scope::Scope(Account& account, Entry entry) : account_(account), entry_(entry), began_(account.now()) {
  account_.current_ = entry;
}

Account::Scope::~Scope() {
  account_.exchanges_[entry_].spent.time += account_.now() - began_;
  account_.current_ = none;
}

void Account::sent(int peer, std::int64_t bytes, Duration time) {
  if (current_ != none) exchanges_[current_].bytes += bytes;
  use(Way::to, peer, bytes, time);
}

void Account::received(int peer, std::int64_t bytes, Duration time, std::optional<Duration> under_way) {
  of(position_.phase).waiting += time;
  if (current_ != none) exchanges_[current_].spent.waiting += time;
  if (under_way) use(Way::from, peer, bytes, *under_way);
}

void Account::use(Way way, int peer, std::int64_t bytes, Duration time) {
  // Of a save all talk to all: what that would say is not worth a thousand lines.
  if (position_.phase < Phase::input || position_.phase > Phase::optimizer) return;
  Link& link = links_[{peer, way}];
  if (link.words == 0) {
    link.words = observer_.intern((way == Way::to ? "to " : "from ") + std::to_string(peer));
  }
  LinkUse& used = link.by_phase[static_cast<std::size_t>(position_.phase)];
  used.bytes += bytes;
  used.times.push_back(time);
}

void Account::tell(EventKind kind, NameId name, NameId detail, std::int64_t a, std::int64_t b, std::int64_t c) {
  observer_.event({.kind = kind,
                   .rank = static_cast<std::int16_t>(position_.rank),
                   .attempt = position_.attempt,
                   .step = step_,
                   .a = a,
                   .b = b,
                   .c = c,
                   .name = name,
                   .detail = detail});
}

void Account::tell_pipeline() {
  if (!ran_forward_ || backward_ended_ < forward_began_) return;
  const Duration window = backward_ended_ - forward_began_;
  Duration busy{0};
  for (const Phase phase : {Phase::forward, Phase::backward}) busy += of(phase).time - of(phase).waiting;
  tell(EventKind::time_spent, observer_.intern("pipeline"), 0, window.count(), (window - busy).count(),
       forward_began_.count());
}

void Account::tell_links() {
  for (auto& [place, link] : links_) {
    for (std::size_t phase = 0; phase < link.by_phase.size(); ++phase) {
      LinkUse& used = link.by_phase[phase];
      if (used.times.empty()) continue;
      const auto messages = static_cast<std::int64_t>(used.times.size());
      observer_.event({.kind = EventKind::exchanged,
                       .phase = static_cast<Phase>(phase),
                       .rank = static_cast<std::int16_t>(position_.rank),
                       .attempt = position_.attempt,
                       .step = step_,
                       .a = used.bytes,
                       .b = lower_quartile(used.times).count() * messages,
                       .c = messages,
                       .name = observer_.intern("link"),
                       .detail = link.words});
      used.bytes = 0;
      used.times.clear();
    }
  }
}

// Of the step that the account was for; the next one is the position's.
void Account::tell() {
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phases_[i].time == Duration{0} || (phase == Phase::none && idles_)) continue;
    const std::string_view name = phase == Phase::none ? "other" : to_string(phase);
    tell(EventKind::time_spent, observer_.intern(name), 0, phases_[i].time.count(), phases_[i].waiting.count(), 0);
  }
  tell_pipeline();
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    const auto same = [&](const Exchanged& other) { return other.group == exchanges_[i].group; };
    if (std::any_of(exchanges_.begin(), exchanges_.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    Spent all;
    for (std::size_t k = i; k < exchanges_.size(); ++k) {
      if (!same(exchanges_[k])) continue;
      all.time += exchanges_[k].spent.time;
      all.waiting += exchanges_[k].spent.waiting;
    }
    if (all.time > Duration{0}) {
      tell(EventKind::time_spent, exchanges_[i].name, 0, all.time.count(), all.waiting.count(), 0);
    }
  }
  for (Exchanged& exchanged : exchanges_) {
    if (exchanged.calls > 0) {
      tell(EventKind::exchanged, exchanged.name, exchanged.operation, exchanged.bytes, exchanged.spent.waiting.count(),
           exchanged.calls);
    }
    exchanged.calls = exchanged.bytes = 0;
    exchanged.spent = {};
  }
  tell_links();
  phases_ = {};
  ran_forward_ = false;
  backward_ended_ = Time{0};
  step_ = position_.step;
}

Status AccountingTransport::send(int peer, Tag tag, const Value& value, Time deadline) {
  const std::int64_t bytes = bytes_of(value);
  const Time before = account_.now();
  Status sent = inner_.send(peer, tag, value, deadline);
  account_.sent(peer, bytes, account_.now() - before);
  return sent;
}

Result<Value> AccountingTransport::recv(int peer, Tag tag, Time deadline) {
  const Time before = account_.now();
  Result<Value> value = inner_.recv(peer, tag, deadline);
  const Duration waited = account_.now() - before;
  const auto under_way = arrivals_ != nullptr && value ? arrivals_->under_way(peer, tag) : std::nullopt;
  account_.received(peer, value ? bytes_of(*value) : 0, waited, under_way);
  return value;
}

Result<Value> AccountingCollectives::all_reduce(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                                const Call& call) {
  return accounted(account_, group, CallKind::all_reduce, [&] { return inner_.all_reduce(group, lanes, op, call); });
}

Result<Value> AccountingCollectives::reduce_scatter(const Group& group, std::span<const Value> lanes, ReduceOp op,
                                                    const Call& call) {
  return accounted(account_, group, CallKind::reduce_scatter,
                   [&] { return inner_.reduce_scatter(group, lanes, op, call); });
}

Result<std::unique_ptr<PendingReduction>> AccountingCollectives::start_all_reduce(const Group& group,
                                                                                  std::span<const Value> lanes,
                                                                                  ReduceOp op, const Call& call) {
  return started(account_, group, CallKind::all_reduce,
                 [&] { return inner_.start_all_reduce(group, lanes, op, call); });
}

Result<std::unique_ptr<PendingReduction>> AccountingCollectives::start_reduce_scatter(const Group& group,
                                                                                      std::span<const Value> lanes,
                                                                                      ReduceOp op, const Call& call) {
  return started(account_, group, CallKind::reduce_scatter,
                 [&] { return inner_.start_reduce_scatter(group, lanes, op, call); });
}

Result<Value> AccountingCollectives::all_gather(const Group& group, const Value& mine, const Call& call) {
  return accounted(account_, group, CallKind::all_gather, [&] { return inner_.all_gather(group, mine, call); });
}

Result<Value> AccountingCollectives::broadcast(const Group& group, const Value& value, int root, const Call& call) {
  return accounted(account_, group, CallKind::broadcast, [&] { return inner_.broadcast(group, value, root, call); });
}

Status AccountingCollectives::barrier(const Group& group, const Call& call) {
  return accounted(account_, group, CallKind::barrier, [&] { return inner_.barrier(group, call); });
}

Result<Value> AccountingCollectives::all_to_all(const Group& group, std::span<const Value> to, const Call& call) {
  return accounted(account_, group, CallKind::all_to_all, [&] { return inner_.all_to_all(group, to, call); });
}

Status AccountingCollectives::send(const Group& group, int peer, const Value& value, const Call& call) {
  return accounted(account_, group, CallKind::send, [&] { return inner_.send(group, peer, value, call); });
}

Result<Value> AccountingCollectives::recv(const Group& group, int peer, const Call& call) {
  return accounted(account_, group, CallKind::recv, [&] { return inner_.recv(group, peer, call); });
}

}  // namespace firedrill
