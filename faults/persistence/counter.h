// Counter: how many distinct legal contents agree with a Partial, exactly. Branch on the cell that excludes most in the
// others, settle what follows, split the rest into parts that cannot influence each other, multiply; a part that was
// counted once is remembered by what is still possible in it (DPLL with component caching: Bacchus, Dalmao and Pitassi
// 2003). It walks the cells in its own way and shares nothing with the engines but the space's windows.
//
// Threads: one object, one thread.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "faults/persistence/count.h"
#include "faults/persistence/crash_data.h"
#include "faults/persistence/crash_space.h"

namespace firedrill::crash {

class Counter {
 public:
  explicit Counter(const CrashSpace& space);

  Count count(const Partial& partial);
  Count count_all();

 private:
  using Row = std::vector<std::uint64_t>;
  // A cell that has a value, with windows left to choose from.
  struct Open {
    CellId cell = 0;
    ValueIndex value = 0;
  };
  struct State {
    Row must;
    Row must_not;
    std::vector<CellId> agenda = {};  // cells that can be reached and have no value
    std::vector<Open> open = {};
    std::set<InodeId> met = {};  // whose cells are on the agenda or have values
  };
  // A node of the graph of what influences what: a cell of the agenda with all below it, or an open one.
  struct Node {
    bool is_open = false;
    std::size_t index = 0;  // in agenda or open
    Row may_need;
    Row may_exclude;
    std::set<InodeId> below = {};
    std::vector<std::uint32_t> possible = {};  // what is still possible in it, for the memo
  };

  Count count(State state);
  bool settle(State& state);
  bool settle_agenda(State& state, bool& changed);
  bool settle_open(State& state, bool& changed);
  bool fits(const State& state, std::uint32_t window) const;
  std::vector<std::uint32_t> fitting(const State& state, CellId cell, ValueIndex value) const;
  bool possible(const State& state, CellId cell, ValueIndex value) const;
  static void add(Row& row, const std::uint64_t* more);
  void choose(State& state, std::uint32_t window) const;
  // Gives the cell a value; its cell must be off the agenda. False: nothing fits.
  bool take(State& state, CellId cell, ValueIndex value) const;
  void meet(State& state, InodeId inode) const;
  bool satisfiable(const State& state, std::size_t next) const;

  Node node_of(const State& state, bool is_open, std::size_t index) const;
  void look_at(const State& state, CellId cell, Node& node) const;
  void look_below(const State& state, InodeId inode, Node& node) const;
  std::vector<std::vector<std::size_t>> parts(const std::vector<Node>& nodes) const;
  Count count_part(const State& state, const std::vector<Node>& nodes, const std::vector<std::size_t>& part);
  std::size_t most_influential(const std::vector<Node>& nodes, const std::vector<std::size_t>& part) const;

  const CrashSpace& space_;
  const SpaceData& data_;
  std::size_t words_;
  std::vector<std::int32_t> given_;  // values that the partial gives, by cell
  std::map<Digest, Count> memo_;
};

}  // namespace firedrill::crash
