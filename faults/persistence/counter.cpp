#include "faults/persistence/counter.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace firedrill::crash {

Counter::Counter(const CrashSpace& space)
    : space_(space), data_(space.data()), words_(space.data().words), given_(space.cell_count(), -1) {}

Count Counter::count_all() { return count(Partial(space_)); }

Count Counter::count(const Partial& partial) {
  State state{.must = data_.certain, .must_not = Row(words_)};
  std::fill(given_.begin(), given_.end(), -1);
  for (std::size_t i = 0; i < partial.depth(); ++i) {
    const auto [cell, value] = partial.assignment(i);
    given_[cell] = static_cast<std::int32_t>(value);
    if (!take(state, cell, value)) return 0;
  }
  state.met.clear();  // what can be reached is found from the root, through the given names
  state.agenda.clear();
  meet(state, root_inode);
  return count(std::move(state));
}

bool Counter::fits(const State& state, std::uint32_t window) const {
  const std::uint64_t* must = data_.must(window);
  const std::uint64_t* must_not = data_.must_not(window);
  std::uint64_t both = 0;
  for (std::size_t w = 0; w < words_; ++w) both |= (must[w] & state.must_not[w]) | (must_not[w] & state.must[w]);
  return both == 0;
}

std::vector<std::uint32_t> Counter::fitting(const State& state, CellId cell, ValueIndex value) const {
  std::vector<std::uint32_t> windows;
  const auto [first, last] = data_.windows(cell, value);
  for (std::uint32_t window = first; window < last; ++window) {
    if (fits(state, window)) windows.push_back(window);
  }
  return windows;
}

bool Counter::possible(const State& state, CellId cell, ValueIndex value) const {
  const auto [first, last] = data_.windows(cell, value);
  for (std::uint32_t window = first; window < last; ++window) {
    if (fits(state, window)) return true;
  }
  return false;
}

void Counter::add(Row& row, const std::uint64_t* more) {
  for (std::size_t w = 0; w < row.size(); ++w) row[w] |= more[w];
}

void Counter::choose(State& state, std::uint32_t window) const {
  add(state.must, data_.must(window));
  add(state.must_not, data_.must_not(window));
}

bool Counter::take(State& state, CellId cell, ValueIndex value) const {
  const std::vector<std::uint32_t> windows = fitting(state, cell, value);
  if (windows.empty()) return false;
  if (windows.size() == 1) {
    choose(state, windows.front());
  } else {
    state.open.push_back({cell, value});
  }
  const Cell& taken = data_.cells[cell];
  if (taken.kind == CellKind::name) meet(state, taken.values[value].inode);
  return true;
}

void Counter::meet(State& state, InodeId inode) const {
  if (inode == no_inode || !state.met.insert(inode).second) return;
  if (data_.kinds[inode] == FileKind::file) {
    const CellId cell = data_.content_cells[inode];
    if (given_[cell] < 0) state.agenda.push_back(cell);
    return;
  }
  for (const CellId cell : data_.directories.at(inode)) {
    if (given_[cell] < 0) {
      state.agenda.push_back(cell);
    } else {
      meet(state, data_.cells[cell].values[static_cast<ValueIndex>(given_[cell])].inode);
    }
  }
}

// What has one possibility left takes it. False: something has none.
bool Counter::settle(State& state) {
  for (bool changed = true; changed;) {
    changed = false;
    if (!settle_open(state, changed) || !settle_agenda(state, changed)) return false;
  }
  return true;
}

bool Counter::settle_open(State& state, bool& changed) {
  for (std::size_t i = 0; i < state.open.size();) {
    const std::vector<std::uint32_t> windows = fitting(state, state.open[i].cell, state.open[i].value);
    if (windows.empty()) return false;
    if (windows.size() > 1) {
      ++i;
      continue;
    }
    choose(state, windows.front());
    state.open.erase(state.open.begin() + static_cast<std::ptrdiff_t>(i));
    changed = true;
  }
  return true;
}

bool Counter::settle_agenda(State& state, bool& changed) {
  for (std::size_t i = 0; i < state.agenda.size();) {
    const CellId cell = state.agenda[i];
    std::size_t values = 0;
    ValueIndex only = 0;
    for (ValueIndex value = 0; value < data_.cells[cell].values.size() && values < 2; ++value) {
      if (!possible(state, cell, value)) continue;
      only = value;
      ++values;
    }
    if (values == 0) return false;
    if (values > 1) {
      ++i;
      continue;
    }
    state.agenda.erase(state.agenda.begin() + static_cast<std::ptrdiff_t>(i));
    take(state, cell, only);
    changed = true;
  }
  return true;
}

bool Counter::satisfiable(const State& state, std::size_t next) const {
  if (next == state.open.size()) return true;
  for (const std::uint32_t window : fitting(state, state.open[next].cell, state.open[next].value)) {
    State more{.must = state.must, .must_not = state.must_not, .open = state.open};
    choose(more, window);
    if (satisfiable(more, next + 1)) return true;
  }
  return false;
}

// The cell and, through the inodes it may lead to, all below it that have no value yet.
void Counter::look_at(const State& state, CellId cell, Node& node) const {
  const Cell& looked_at = data_.cells[cell];
  node.possible.push_back(cell);
  for (ValueIndex value = 0; value < looked_at.values.size(); ++value) {
    const auto [first, last] = data_.windows(cell, value);
    bool any = false;
    for (std::uint32_t window = first; window < last; ++window) {
      if (!fits(state, window)) continue;
      any = true;
      node.possible.push_back(~window);
      add(node.may_need, data_.must(window));
      add(node.may_exclude, data_.must_not(window));
    }
    if (any && looked_at.kind == CellKind::name) look_below(state, looked_at.values[value].inode, node);
  }
}

void Counter::look_below(const State& state, InodeId inode, Node& node) const {
  if (inode == no_inode || state.met.contains(inode) || !node.below.insert(inode).second) return;
  if (data_.kinds[inode] == FileKind::file) {
    if (given_[data_.content_cells[inode]] < 0) look_at(state, data_.content_cells[inode], node);
    return;
  }
  for (const CellId child : data_.directories.at(inode)) {
    if (given_[child] < 0) {
      look_at(state, child, node);
    } else {
      node.possible.push_back(~child);
      look_below(state, data_.cells[child].values[static_cast<ValueIndex>(given_[child])].inode, node);
    }
  }
}

Counter::Node Counter::node_of(const State& state, bool is_open, std::size_t index) const {
  Node node{.is_open = is_open, .index = index, .may_need = Row(words_), .may_exclude = Row(words_)};
  if (!is_open) {
    look_at(state, state.agenda[index], node);
    return node;
  }
  const Open& open = state.open[index];
  node.possible = {open.cell, ~open.value};
  for (const std::uint32_t window : fitting(state, open.cell, open.value)) {
    node.possible.push_back(~window);
    add(node.may_need, data_.must(window));
    add(node.may_exclude, data_.must_not(window));
  }
  return node;
}

// Two nodes influence each other if one may need what the other may exclude, or if both may lead to the same inode (of
// which the facts of its cells mostly tell already).
std::vector<std::vector<std::size_t>> Counter::parts(const std::vector<Node>& nodes) const {
  std::vector<std::size_t> leader(nodes.size());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  const auto unite = [&](std::size_t a, std::size_t b) { leader[find(b)] = find(a); };
  std::map<InodeId, std::size_t> leads;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const InodeId inode : nodes[i].below) {
      const auto [it, added] = leads.emplace(inode, i);
      if (!added) unite(it->second, i);
    }
  }
  Row needed(words_);
  Row excluded(words_);
  for (const Node& node : nodes) {
    add(needed, node.may_need.data());
    add(excluded, node.may_exclude.data());
  }
  std::vector<std::size_t> owner(words_ * 64, nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t bits = (nodes[i].may_need[w] | nodes[i].may_exclude[w]) & needed[w] & excluded[w];
      for (; bits != 0; bits &= bits - 1) {
        std::size_t& first = owner[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
        if (first == nodes.size()) first = i;
        unite(first, i);
      }
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> by_leader;
  for (std::size_t i = 0; i < nodes.size(); ++i) by_leader[find(i)].push_back(i);
  std::vector<std::vector<std::size_t>> all;
  all.reserve(by_leader.size());
  for (auto& [first, part] : by_leader) all.push_back(std::move(part));
  return all;
}

Count Counter::count(State state) {
  if (!settle(state)) return 0;
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < state.agenda.size(); ++i) nodes.push_back(node_of(state, false, i));
  for (std::size_t i = 0; i < state.open.size(); ++i) nodes.push_back(node_of(state, true, i));
  Count product = 1;
  for (const std::vector<std::size_t>& part : parts(nodes)) {
    product *= count_part(state, nodes, part);
    if (product == Count()) break;
  }
  return product;
}

std::size_t Counter::most_influential(const std::vector<Node>& nodes, const std::vector<std::size_t>& part) const {
  std::vector<std::uint32_t> needing(words_ * 64);
  std::vector<std::uint32_t> excluding(words_ * 64);
  const auto for_bits = [&](const Row& row, const auto& visit) {
    for (std::size_t w = 0; w < words_; ++w) {
      for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  };
  for (const std::size_t i : part) {
    for_bits(nodes[i].may_need, [&](std::size_t bit) { ++needing[bit]; });
    for_bits(nodes[i].may_exclude, [&](std::size_t bit) { ++excluding[bit]; });
  }
  std::size_t best = nodes.size();
  std::uint64_t best_influence = 0;
  for (const std::size_t i : part) {
    if (nodes[i].is_open) continue;
    std::uint64_t influence = 1;
    for_bits(nodes[i].may_need, [&](std::size_t bit) { influence += excluding[bit]; });
    for_bits(nodes[i].may_exclude, [&](std::size_t bit) { influence += needing[bit]; });
    if (influence <= best_influence) continue;
    best_influence = influence;
    best = i;
  }
  return best;
}

Count Counter::count_part(const State& state, const std::vector<Node>& nodes, const std::vector<std::size_t>& part) {
  State rest{.must = state.must, .must_not = state.must_not, .met = state.met};
  std::vector<std::uint32_t> key;
  for (const std::size_t i : part) {
    const Node& node = nodes[i];
    key.insert(key.end(), node.possible.begin(), node.possible.end());
    key.push_back(node.is_open ? 1 : 0);
    if (node.is_open) rest.open.push_back(state.open[node.index]);
  }
  const std::size_t branch = most_influential(nodes, part);
  if (branch == nodes.size()) return satisfiable(rest, 0) ? 1 : 0;
  const Digest digest = digest_of(std::as_bytes(std::span(key)));
  if (const auto known = memo_.find(digest); known != memo_.end()) return known->second;
  for (const std::size_t i : part) {
    if (!nodes[i].is_open && i != branch) rest.agenda.push_back(state.agenda[nodes[i].index]);
  }
  const CellId cell = state.agenda[nodes[branch].index];
  Count sum;
  for (ValueIndex value = 0; value < data_.cells[cell].values.size(); ++value) {
    State more = rest;
    if (take(more, cell, value)) sum += count(std::move(more));
  }
  memo_.emplace(digest, sum);
  return sum;
}

Count count(const CrashSpace& space) { return Counter(space).count_all(); }
Count count(const Partial& partial) { return Counter(partial.space()).count(partial); }

}  // namespace firedrill::crash
