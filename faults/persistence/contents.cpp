#include "faults/persistence/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "faults/persistence/rules.h"

namespace firedrill::crash {

namespace {

bool part_of(const std::vector<std::uint64_t>& part, const std::vector<std::uint64_t>& all) {
  for (std::size_t w = 0; w < part.size(); ++w) {
    if ((part[w] & ~all[w]) != 0) return false;
  }
  return true;
}

// `a` is legal whenever `b` is.
bool covers(const Window& a, const Window& b) { return part_of(a.must, b.must) && part_of(a.must_not, b.must_not); }

void add_window(std::vector<Window>& windows, Window window) {
  for (const Window& other : windows) {
    if (covers(other, window)) return;
  }
  std::erase_if(windows, [&](const Window& other) { return covers(window, other); });
  windows.push_back(std::move(window));
}

// A write's bytes as its fate leaves them, onto the bytes before it.
void apply(std::span<std::byte> content, const WriteItem& write, const FateOfWrite& fate) {
  const auto size = static_cast<std::int64_t>(content.size());
  const std::int64_t end = std::min(write.end(), size);
  const auto fill = [&](std::int64_t from, std::int64_t to, bool zeros) {
    from = std::max(from, write.offset);
    to = std::min(to, end);
    if (from >= to) return;
    std::byte* target = content.data() + from;
    if (zeros) {
      std::memset(target, 0, static_cast<std::size_t>(to - from));
    } else {
      std::memcpy(target, write.bytes.bytes().data() + (from - write.offset), static_cast<std::size_t>(to - from));
    }
  };
  const std::int64_t sector = fate.sector * sector_size;
  switch (fate.fate) {
    case WriteFate::whole: fill(write.offset, end, false); break;
    case WriteFate::old: break;
    case WriteFate::zeros: fill(write.offset, end, true); break;
    case WriteFate::torn_zeros: fill(sector, sector + sector_size, true); [[fallthrough]];
    case WriteFate::torn_old:
      fill(write.offset, sector, false);
      fill(sector + sector_size, end, false);
      break;
  }
}

}  // namespace

struct Drafter::Walk {
  InodeId inode;
  const FileHistory& file;
  std::int64_t size = 0;
  std::vector<std::uint32_t> writes = {};  // that the size reaches
  CellDraft& draft;
  std::map<Digest, std::size_t> known = {};  // contents by digest
  std::size_t leaves = 0;
};

Drafter::Drafter(const Structure& structure, const Facts& facts, const SpaceOptions& options,
                 std::vector<std::uint64_t> certain)
    : structure_(structure), facts_(facts), options_(options), certain_(std::move(certain)) {}

Window Drafter::start() const {
  return {.must = certain_, .must_not = std::vector<std::uint64_t>(facts_.words()), .version = 0};
}

void Drafter::require(Window& window, FactId fact) const {
  const std::span<const std::uint64_t> closure = facts_.closure(fact);
  for (std::size_t w = 0; w < closure.size(); ++w) window.must[w] |= closure[w];
}

void Drafter::forbid(Window& window, FactId fact) { window.must_not[fact / 64] |= std::uint64_t{1} << (fact % 64); }

bool Drafter::contradicts(const Window& window) {
  for (std::size_t w = 0; w < window.must.size(); ++w) {
    if ((window.must[w] & window.must_not[w]) != 0) return true;
  }
  return false;
}

CellDraft Drafter::name(std::uint32_t index) const {
  const NameCell& cell = structure_.names[index];
  CellDraft draft;
  draft.cell = {.kind = CellKind::name, .inode = cell.directory, .name = cell.name};
  for (std::uint32_t v = 0; v < cell.versions.size(); ++v) {
    const NameVersion& version = cell.versions[v];
    Window window = start();
    window.version = v;
    if (v > 0) require(window, facts_.named(index, v));
    if (v + 1 < cell.versions.size()) forbid(window, facts_.named(index, v + 1));
    if (version.lost_by) forbid(window, facts_.issued(*version.lost_by));
    if (contradicts(window)) continue;
    std::vector<CellValue>& values = draft.cell.values;
    const auto same = std::find_if(values.begin(), values.end(),
                                   [&](const CellValue& value) { return value.inode == version.inode; });
    if (same == values.end()) {
      values.push_back({.inode = version.inode});
      draft.windows.push_back({std::move(window)});
    } else {
      add_window(draft.windows[static_cast<std::size_t>(same - values.begin())], std::move(window));
    }
  }
  return draft;
}

std::optional<Window> Drafter::size_window(InodeId file, std::uint32_t version) const {
  const std::vector<SizeVersion>& sizes = structure_.files.at(file).sizes;
  Window window = start();
  window.version = version;
  if (version > 0) require(window, facts_.sized(file, version));
  if (version + 1 < sizes.size()) forbid(window, facts_.sized(file, version + 1));
  if (sizes[version].lost_by) forbid(window, facts_.issued(*sizes[version].lost_by));
  if (contradicts(window)) return std::nullopt;
  return window;
}

CellDraft Drafter::size(InodeId inode) const {
  CellDraft draft;
  draft.cell = {.kind = CellKind::size, .inode = inode};
  const FileHistory& file = structure_.files.at(inode);
  for (std::uint32_t v = 0; v < file.sizes.size(); ++v) {
    std::optional<Window> window = size_window(inode, v);
    if (!window) continue;
    std::vector<CellValue>& values = draft.cell.values;
    const auto same = std::find_if(values.begin(), values.end(),
                                   [&](const CellValue& value) { return value.size == file.sizes[v].size; });
    if (same == values.end()) {
      values.push_back({.size = file.sizes[v].size});
      draft.windows.push_back({std::move(*window)});
    } else {
      add_window(draft.windows[static_cast<std::size_t>(same - values.begin())], std::move(*window));
    }
  }
  return draft;
}

std::vector<FateOfWrite> Drafter::fates_of(std::uint32_t index) const {
  const WriteItem& write = structure_.writes[index];
  const bool zeros = loss_reads_as_zeros(options_.profile);
  std::vector<FateOfWrite> fates = {{index, WriteFate::whole}, {index, WriteFate::old}};
  if (zeros) fates.push_back({index, WriteFate::zeros});
  const std::int64_t first = write.offset / sector_size;
  const std::int64_t last = (write.end() - 1) / sector_size;
  if (!options_.profile.torn || first == last) return fates;
  std::int64_t before = -1;
  for (const std::int64_t sector : {first, (first + last) / 2, last}) {
    if (sector == before) continue;
    before = sector;
    fates.push_back({index, WriteFate::torn_old, sector});
    if (zeros) fates.push_back({index, WriteFate::torn_zeros, sector});
  }
  return fates;
}

std::optional<Window> Drafter::with_fate(const Window& window, const FateOfWrite& fate) const {
  const WriteItem& write = structure_.writes[fate.write];
  Window more = window;
  more.fates.push_back(fate);
  if (fate.fate == WriteFate::whole) {
    require(more, facts_.whole(fate.write));
  } else {
    forbid(more, facts_.whole(fate.write));
  }
  if (fate.fate != WriteFate::old) {
    require(more, facts_.issued(write.operation));
    if (write.lost_by) forbid(more, facts_.issued(*write.lost_by));
  }
  if (contradicts(more)) return std::nullopt;
  return more;
}

Value Drafter::compose(const FileHistory& file, std::int64_t size, const std::vector<FateOfWrite>& fates) const {
  const auto size_of = [](const Value& value) { return static_cast<std::int64_t>(value.size()); };
  // The buffer that is there already, where one write or the base makes the whole content.
  std::size_t used = fates.size();
  while (used > 0 && fates[used - 1].fate == WriteFate::old) --used;
  if (used == 0 && size_of(file.base) == size) return file.base;
  if (used > 0 && fates[used - 1].fate == WriteFate::whole) {
    const WriteItem& last = structure_.writes[fates[used - 1].write];
    if (last.offset == 0 && last.end() == size) return last.bytes;
  }
  MutableValue content(DType::u8, Shape{size});
  const std::span<std::byte> bytes = content.bytes();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  const std::size_t kept = std::min(bytes.size(), file.base.size());
  if (kept > 0) std::memcpy(bytes.data(), file.base.bytes().data(), kept);
  for (const FateOfWrite& fate : fates) apply(bytes, structure_.writes[fate.write], fate);
  return std::move(content).freeze();
}

Status Drafter::walk(Walk& walk, const Window& window, std::size_t next) const {
  if (next < walk.writes.size()) {
    for (const FateOfWrite& fate : fates_of(walk.writes[next])) {
      const std::optional<Window> more = with_fate(window, fate);
      if (more) FD_TRY_VOID(this->walk(walk, *more, next + 1));
    }
    return {};
  }
  Value bytes = compose(walk.file, walk.size, window.fates);
  const auto [it, added] = walk.known.emplace(bytes.digest(), walk.draft.windows.size());
  if (added) {
    walk.draft.cell.values.push_back({.size = walk.size, .bytes = std::move(bytes)});
    walk.draft.windows.emplace_back();
  }
  add_window(walk.draft.windows[it->second], window);
  if (++walk.leaves <= 8 * options_.contents_max && walk.known.size() <= options_.contents_max) return {};
  return Error{.code = Code::invalid_input,
               .message = fmt::format("{} may be left with more than {} contents", structure_.paths.at(walk.inode),
                                      options_.contents_max),
               .hint = "it has too many writes without a sync between them: write larger pieces, or raise the limit"};
}

Result<CellDraft> Drafter::content(InodeId inode) const {
  CellDraft draft;
  draft.cell = {.kind = CellKind::content, .inode = inode};
  const FileHistory& file = structure_.files.at(inode);
  Walk walk{.inode = inode, .file = file, .draft = draft};
  for (std::uint32_t v = 0; v < file.sizes.size(); ++v) {
    const std::optional<Window> window = size_window(inode, v);
    if (!window) continue;
    walk.size = file.sizes[v].size;
    walk.writes.clear();
    for (const std::uint32_t write : file.writes) {
      if (structure_.writes[write].offset < walk.size) walk.writes.push_back(write);
    }
    FD_TRY_VOID(this->walk(walk, *window, 0));
  }
  return draft;
}

}  // namespace firedrill::crash
