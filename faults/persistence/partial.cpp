// Partial: assignments one above the other. For each level it keeps the facts that must and must not hold up to there,
// twice: for the windows that are chosen, and for those windows alone that their values have no other of ("sure"). What
// does not fit the sure ones fits nothing; what does not fit the chosen ones may after another choice, which a search
// finds. Taking a level back costs nothing: a choice that fits as a whole fits without its last part.
#include <algorithm>
#include <bit>

#include "engine/base/check.h"
#include "faults/persistence/crash_data.h"
#include "faults/persistence/crash_space.h"

namespace firedrill::crash {

Partial::Partial(const CrashSpace& space)
    : space_(space), data_(space.data()), words_(space.data().words), values_(space.cell_count(), -1) {
  const std::size_t levels = space.cell_count() + 1;
  cells_.resize(levels);
  chosen_.resize(levels);
  must_.resize((levels + 1) * words_);
  must_not_.resize((levels + 1) * words_);
  sure_must_.resize((levels + 1) * words_);
  sure_must_not_.resize((levels + 1) * words_);
  trial_.resize(levels + 1);
  trial_must_.resize((levels + 2) * words_);
  trial_must_not_.resize((levels + 2) * words_);
  open_.reserve(levels + 1);
  std::copy(data_.certain.begin(), data_.certain.end(), must_.begin());
  std::copy(data_.certain.begin(), data_.certain.end(), sure_must_.begin());
}

Partial::~Partial() = default;

namespace {

using Row = const std::uint64_t*;

bool meets(Row a, Row b, std::size_t words) {
  std::uint64_t both = 0;
  for (std::size_t w = 0; w < words; ++w) both |= a[w] & b[w];
  return both != 0;
}

void join(Row a, Row b, std::uint64_t* into, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) into[w] = a[w] | b[w];
}

}  // namespace

bool Partial::fits(Row must, Row must_not, std::uint32_t window) const {
  return !meets(must, data_.must_not(window), words_) && !meets(must_not, data_.must(window), words_);
}

// Writes level + 1 of all rows.
void Partial::put(std::size_t level, std::uint32_t window, bool sure) {
  const std::size_t row = level * words_;
  const std::size_t next = row + words_;
  chosen_[level] = window;
  join(&must_[row], data_.must(window), &must_[next], words_);
  join(&must_not_[row], data_.must_not(window), &must_not_[next], words_);
  if (sure) {
    join(&sure_must_[row], data_.must(window), &sure_must_[next], words_);
    join(&sure_must_not_[row], data_.must_not(window), &sure_must_not_[next], words_);
  } else {
    std::copy_n(&sure_must_[row], words_, &sure_must_[next]);
    std::copy_n(&sure_must_not_[row], words_, &sure_must_not_[next]);
  }
}

bool Partial::assign(CellId cell, ValueIndex value) {
  FD_CHECK(values_[cell] < 0, "cell {} has a value already", cell);
  const auto [first, last] = data_.windows(cell, value);
  const std::size_t row = depth_ * words_;
  bool possible = false;
  for (std::uint32_t window = first; window < last; ++window) {
    if (!fits(&sure_must_[row], &sure_must_not_[row], window)) continue;
    possible = true;
    if (!fits(&must_[row], &must_not_[row], window)) continue;
    push(cell, value, window, last - first == 1);
    return true;
  }
  if (!possible || open_.empty()) return false;
  cells_[depth_] = cell;
  values_[cell] = static_cast<std::int32_t>(value);
  open_.push_back(static_cast<std::uint32_t>(depth_));
  start_trial();
  const bool found = search(0);
  open_.pop_back();
  values_[cell] = -1;
  if (!found) return false;
  const std::uint32_t window = trial_[open_.size()];
  settle();
  push(cell, value, window, last - first == 1);
  return true;
}

void Partial::push(CellId cell, ValueIndex value, std::uint32_t window, bool sure) {
  cells_[depth_] = cell;
  values_[cell] = static_cast<std::int32_t>(value);
  put(depth_, window, sure);
  if (!sure) open_.push_back(static_cast<std::uint32_t>(depth_));
  ++depth_;
}

void Partial::undo() {
  FD_CHECK(depth_ > 0, "nothing is assigned");
  --depth_;
  values_[cells_[depth_]] = -1;
  if (!open_.empty() && open_.back() == depth_) open_.pop_back();
}

// Picks a window for the open levels from the n-th on, above row n of the trial rows.
bool Partial::search(std::size_t n) {
  if (n == open_.size()) return true;
  const CellId cell = cells_[open_[n]];
  const auto [first, last] = data_.windows(cell, static_cast<ValueIndex>(values_[cell]));
  for (std::uint32_t window = first; window < last; ++window) {
    if (extend_trial(n, window) && search(n + 1)) return true;
  }
  return false;
}

// Row 0 of the trial rows: what holds whatever is chosen for the open levels.
void Partial::start_trial() {
  const std::size_t row = depth_ * words_;
  std::copy_n(&sure_must_[row], words_, trial_must_.data());
  std::copy_n(&sure_must_not_[row], words_, trial_must_not_.data());
}

bool Partial::extend_trial(std::size_t n, std::uint32_t window) {
  const std::size_t row = n * words_;
  const std::size_t next = row + words_;
  if (!fits(&trial_must_[row], &trial_must_not_[row], window)) return false;
  join(&trial_must_[row], data_.must(window), &trial_must_[next], words_);
  join(&trial_must_not_[row], data_.must_not(window), &trial_must_not_[next], words_);
  trial_[n] = window;
  return true;
}

// Takes over what the search found for the levels that are there.
void Partial::settle() {
  for (std::size_t n = 0; n < open_.size(); ++n) chosen_[open_[n]] = trial_[n];
  rebuild();
}

// The rows again, from the first open level on.
void Partial::rebuild() {
  if (open_.empty()) return;
  std::size_t n = 0;
  for (std::size_t level = open_[0]; level < depth_; ++level) {
    const bool is_open = n < open_.size() && open_[n] == level;
    n += is_open ? 1 : 0;
    put(level, chosen_[level], !is_open);
  }
}

bool Partial::feasible(CellId cell, ValueIndex value) {
  if (!assign(cell, value)) return false;
  undo();
  return true;
}

std::pair<CellId, ValueIndex> Partial::assignment(std::size_t i) const {
  return {cells_[i], static_cast<ValueIndex>(values_[cells_[i]])};
}

bool Partial::may_contain(OperationId operation) {
  const std::size_t row = depth_ * words_;
  const std::uint64_t* issued = data_.issued(operation);
  if (!meets(&must_not_[row], issued, words_)) return true;
  if (open_.empty() || meets(&sure_must_not_[row], issued, words_)) return false;
  start_trial();
  join(trial_must_.data(), issued, trial_must_.data(), words_);
  if (!search(0)) return false;
  settle();
  return true;
}

std::optional<CheckpointId> Partial::requirement() {
  for (const OperationId id : data_.acknowledgements_newest_first) {
    if (may_contain(id)) return data_.trace.operations[id].checkpoint;
  }
  return std::nullopt;
}

std::optional<CheckpointId> Partial::newest_committed() {
  for (const OperationId id : data_.commits_newest_first) {
    if (may_contain(id)) return data_.trace.operations[id].checkpoint;
  }
  return std::nullopt;
}

}  // namespace firedrill::crash
