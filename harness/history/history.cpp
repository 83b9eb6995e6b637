#include "harness/history/history.h"

#include <algorithm>
#include <utility>

namespace firedrill {
namespace {

constexpr std::size_t events_at_first = 8192;
constexpr std::size_t words_per_event = 14;
constexpr std::size_t events_per_block = 64;

std::uint64_t word(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

History::History(Tables& tables) : tables_(&tables) { events_.reserve(events_at_first); }

void History::reset() {
  events_.clear();
  indexed_ = false;
}

void History::index() const {
  std::array<std::uint32_t, event_kind_count> next{};
  for (const Event& event : events_) ++next[static_cast<std::size_t>(event.kind)];
  std::uint32_t behind = 0;
  for (std::size_t k = 0; k < next.size(); ++k) {
    first_[k] = behind;
    behind += std::exchange(next[k], behind);
  }
  first_.back() = behind;
  order_.resize(events_.size());
  std::uint32_t* const order = order_.data();
  std::uint32_t position = 0;
  for (const Event& event : events_) order[next[static_cast<std::size_t>(event.kind)]++] = position++;
  indexed_ = true;
}

Digest History::digest() const {
  // Blocks are chained: each begins with the digest of those before it.
  std::array<std::uint64_t, 2 + words_per_event * events_per_block> block;
  Digest so_far;
  for (std::size_t begin = 0; begin < events_.size(); begin += events_per_block) {
    std::size_t used = 0;
    const auto put = [&](std::uint64_t value) { block[used++] = value; };
    const auto put_digest = [&](const Digest& digest) {
      put(digest.high);
      put(digest.low);
    };
    put_digest(so_far);
    for (std::size_t i = begin; i < std::min(begin + events_per_block, events_.size()); ++i) {
      const Event& event = events_[i];
      const bool is_probe = event.kind == EventKind::probe;
      put(static_cast<std::uint64_t>(event.kind) << 56 | static_cast<std::uint64_t>(event.phase) << 48 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(event.rank)) << 32 |
          static_cast<std::uint32_t>(event.attempt));
      put(word(event.step));
      put(is_probe ? 0 : word(event.a));
      put(word(event.b));
      put(word(event.c));
      put(word(event.time.count()));
      put_digest(event.digest);
      put_digest(tables_->names.digest(event.name));
      put_digest(tables_->names.digest(event.detail));
      put_digest(is_probe ? tables_->probes.digest(event.a) : Digest{});
    }
    so_far = digest_of(std::span<const std::uint64_t>(block.data(), used));
  }
  return so_far;
}

}  // namespace firedrill
