#include "engine/sim/store.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "engine/sim/rank.h"

namespace firedrill::sim {

const std::string* SimStore::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void SimStore::set(std::string_view key, std::string value) {
  if (const auto found = values_.find(key); found != values_.end()) {
    found->second = std::move(value);
  } else {
    values_.emplace(std::string(key), std::move(value));
  }
}

void RankStore::publish(std::string_view key, std::string value) {
  store_->set(key, std::move(value));
  Scheduler& scheduler = rank_.scheduler();
  for (const SimStore::Waiter& waiter : store_->waiters) {
    if (waiter.key != key) continue;
    scheduler.wake(*waiter.fiber, scheduler.now() + scheduler.jittered(rank_.costs().latency_between_nodes));
  }
}

Status RankStore::set(std::string_view key, std::string_view value) {
  FD_TRY_VOID(rank_.enter_abortable(rank_.costs().latency_between_nodes));
  publish(key, std::string(value));
  return {};
}

Result<std::string> RankStore::get(std::string_view key, Time deadline) {
  FD_TRY_VOID(rank_.enter_abortable(rank_.costs().latency_between_nodes));
  for (;;) {
    if (const std::string* value = store_->find(key)) return *value;
    if (rank_.scheduler().now() >= deadline) {
      return Error{.code = Code::timeout, .message = fmt::format("nobody set the key '{}'", key)};
    }
    Fiber& self = rank_.scheduler().current();
    store_->waiters.push_back({.key = key, .rank = &rank_, .fiber = &self});
    Status waited = rank_.wait(deadline, {.what = "the key '{2}'", .text = key});
    std::erase_if(store_->waiters, [&self](const SimStore::Waiter& waiter) { return waiter.fiber == &self; });
    if (!waited) return std::move(waited).error();
  }
}

Result<std::int64_t> RankStore::add(std::string_view key, std::int64_t amount) {
  FD_TRY_VOID(rank_.enter_abortable(rank_.costs().latency_between_nodes));
  std::int64_t total = 0;
  if (const std::string* value = store_->find(key)) {
    std::from_chars(value->data(), value->data() + value->size(), total);
  }
  total += amount;
  publish(key, std::to_string(total));
  return total;
}

}  // namespace firedrill::sim
