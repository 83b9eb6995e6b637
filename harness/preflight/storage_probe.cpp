// What a rank measures of the storage. Rank 0 writes, the others look on; each step ends with a meeting of all, so that
// a rank whose storage hangs is the only one that is not waiting.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "engine/os/directory_file_system.h"
#include "harness/preflight/probes.h"
#include "harness/preflight/storage.h"

namespace firedrill::preflight {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t page = 4096;
constexpr std::int64_t chunk = 1 << 20;
constexpr int races = 16;
constexpr milliseconds renaming{300};
constexpr milliseconds look_again{1};
constexpr milliseconds patience{3'000};
constexpr int sync_rounds = 24;
constexpr int sync_rounds_min = 3;
constexpr milliseconds syncing{1'500};
constexpr int sights = 3;

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

// `size` bytes that say which they are.
Value pattern(std::int64_t size, std::uint8_t number) {
  MutableValue value(DType::u8, Shape{size});
  std::fill(value.bytes().begin(), value.bytes().end(), static_cast<std::byte>(number));
  return std::move(value).freeze();
}

class StorageProbe {
 public:
  explicit StorageProbe(const Probe& probe)
      : probe_(probe), directory_(probe.work.at("directory").get<std::string>()), scratch_(probe.work.at("scratch")) {}

  StorageOfRank run() {
    if (!open()) return result_;
    exclusive();
    rename_under_readers();
    syncs();
    sight();
    space();
    if (writer() && probe_.work.at("alone").get<bool>()) note("write alone", write_alone());
    meet();
    bandwidth();
    clean();
    return result_;
  }

 private:
  bool writer() const { return probe_.rank == 0; }
  void meet() { probe_.line.meet(); }
  std::string path(std::string_view name) const { return fmt::format("{}/{}", scratch_, name); }
  void doing(std::string_view what) const { probe_.line.doing(fmt::format("{} in {}", what, directory_)); }
  void note(std::string_view step, const Status& status) {
    if (!status) result_.troubles.push_back({std::string(step), describe(status.error())});
  }

  // False: on some rank the directory cannot be used, and nothing else needs to be tried.
  bool open();
  Status open_here();
  void exclusive();
  void rename_under_readers();
  Status rename_for_a_while();
  void read_for_a_while();
  void syncs();
  Status sync_round(int round);
  void sight();
  Status show(int round);
  Status grow();
  bool size_is(int round, std::int64_t size);
  void look(int round);
  void look_at_growth(int round);
  bool all_saw();
  double wait_until(const std::function<bool()>& seen) const;
  void space();
  void measure_space();
  Status write_file(const std::string& name, std::int64_t size, std::uint8_t number);
  Status write_alone();
  void bandwidth();
  Status read_back(const std::string& name, std::uint8_t number);
  void clean();
  Status remove_all();

  const Probe& probe_;
  std::string directory_;
  std::string scratch_;
  std::unique_ptr<DirectoryFileSystem> real_;
  std::unique_ptr<FileSystem> decorated_;
  FileSystem* files_ = nullptr;
  std::unique_ptr<File> grown_;
  std::int64_t bytes_ = page;  // that a rank writes at once
  StorageOfRank result_;
};

Status StorageProbe::open_here() {
  if (writer()) {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    if (error) {
      return Error{.code = Code::io_error, .message = fmt::format("cannot make {}: {}", directory_, error.message())};
    }
  }
  return {};
}

bool StorageProbe::open() {
  doing("making the directory");
  note("make directory", open_here());
  meet();
  doing("opening the directory");
  Result<std::unique_ptr<DirectoryFileSystem>> opened = DirectoryFileSystem::open_root(directory_);
  if (opened) {
    real_ = std::move(*opened);
    files_ = real_.get();
    if (probe_.seams.files) {
      decorated_ = probe_.seams.files(*real_, probe_.rank);
      files_ = decorated_.get();
    }
    doing("make_directory");
    if (writer()) note("make directory", files_->make_directory(scratch_));
  } else {
    note("open directory", opened.error());
  }
  bool all = true;
  for (const Json& fine : probe_.line.meet(result_.troubles.empty())) all = all && fine.get<bool>();
  return all;
}

void StorageProbe::exclusive() {
  result_.races = races;
  for (int race = 0; race < races; ++race) {
    doing("exclusive create");
    meet();
    const Result<std::unique_ptr<File>> file = files_->create(path(fmt::format("race-{}", race)));
    if (file) result_.won.push_back(race);
    if (!file && !file.failed_with(Code::already_exists)) note("exclusive create", file.error());
  }
  meet();
}

Status StorageProbe::write_file(const std::string& name, std::int64_t size, std::uint8_t number) {
  FD_TRY(const std::unique_ptr<File> file, files_->create(path(name)));
  const Value bytes = pattern(std::min(size, chunk), number);
  for (std::int64_t offset = 0; offset < size; offset += chunk) {
    const Value part = size - offset >= chunk ? bytes : pattern(size - offset, number);
    FD_TRY_VOID(file->write(offset, part));
  }
  FD_TRY_VOID(file->sync());
  return file->close();
}

Status StorageProbe::rename_for_a_while() {
  const Clock::time_point until = Clock::now() + renaming;
  for (std::uint8_t number = 1; Clock::now() < until && number < 250; ++number) {
    FD_TRY(const std::unique_ptr<File> file, files_->create(path("next")));
    FD_TRY_VOID(file->write(0, pattern(page, number)));
    FD_TRY_VOID(file->close());
    FD_TRY_VOID(files_->rename(path("next"), path("target")));
    ++result_.renames;
    std::this_thread::sleep_for(look_again);  // so that there is more than one for a reader to see
  }
  return {};
}

void StorageProbe::read_for_a_while() {
  const Clock::time_point until = Clock::now() + renaming;
  int newest = 0;
  while (Clock::now() < until) {
    ++result_.reads;
    const Result<std::unique_ptr<File>> file = files_->open(path("target"));
    if (!file) {
      if (!file.failed_with(Code::not_found)) return note("read under rename", file.error());
      ++result_.missing;
      continue;
    }
    const Result<Value> bytes = (*file)->read(0, page + 1);
    if (!bytes) return note("read under rename", bytes.error());
    const std::span<const std::byte> seen = bytes->bytes();
    if (seen.size() != page || std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) != seen.end()) {
      ++result_.mixed;
      continue;
    }
    const int number = static_cast<int>(seen.front());
    if (number < newest) ++result_.backwards;
    newest = std::max(newest, number);
  }
}

void StorageProbe::rename_under_readers() {
  doing("rename");
  if (writer()) note("rename", write_file("target", page, 0));
  meet();
  if (writer()) {
    note("rename", rename_for_a_while());
  } else {
    read_for_a_while();
  }
  meet();
}

Status StorageProbe::sync_round(int round) {
  FD_TRY(const std::unique_ptr<File> file, files_->create(path(fmt::format("sync-{}", round))));
  FD_TRY_VOID(file->write(0, pattern(page, 1)));
  doing("sync of a file");
  Clock::time_point began = Clock::now();
  FD_TRY_VOID(file->sync());
  result_.file_syncs.push_back(ms_since(began));
  FD_TRY_VOID(file->close());
  doing("sync of a directory");
  began = Clock::now();
  FD_TRY_VOID(files_->sync_directory(scratch_));
  result_.directory_syncs.push_back(ms_since(began));
  return {};
}

void StorageProbe::syncs() {
  if (writer()) {
    const Clock::time_point until = Clock::now() + syncing;
    for (int round = 0; round < sync_rounds && (round < sync_rounds_min || Clock::now() < until); ++round) {
      const Status status = sync_round(round);
      note("sync", status);
      if (!status) break;
    }
  }
  meet();
}

// Milliseconds; below zero: never.
double StorageProbe::wait_until(const std::function<bool()>& seen) const {
  const Clock::time_point began = Clock::now();
  while (!seen()) {
    if (Clock::now() - began > patience) return -1;
    std::this_thread::sleep_for(look_again);
  }
  return ms_since(began);
}

Status StorageProbe::show(int round) {
  FD_TRY(grown_, files_->create(path(fmt::format("seen-{}", round))));
  FD_TRY_VOID(grown_->write(0, pattern(page, 1)));
  FD_TRY_VOID(grown_->sync());
  return files_->sync_directory(scratch_);
}

Status StorageProbe::grow() {
  FD_TRY_VOID(grown_->write(page, pattern(page, 2)));
  FD_TRY_VOID(grown_->sync());
  return grown_->close();
}

bool StorageProbe::size_is(int round, std::int64_t size) {
  const Result<FileInfo> info = files_->stat(path(fmt::format("seen-{}", round)));
  return info && info->size == size;
}

void StorageProbe::look(int round) {
  const std::string name = fmt::format("seen-{}", round);
  doing("stat of what another rank made");
  result_.seen_by_stat.push_back(wait_until([&] { return size_is(round, page); }));
  doing("list of what another rank made");
  result_.seen_by_list.push_back(wait_until([&] {
    const Result<std::vector<std::string>> names = files_->list(scratch_);
    return names && std::ranges::find(*names, name) != names->end();
  }));
}

void StorageProbe::look_at_growth(int round) {
  doing("stat of what another rank wrote");
  result_.seen_grown.push_back(wait_until([&] { return size_is(round, 2 * page); }));
}

// Whether all saw it; who waits in vain once need not wait again.
bool StorageProbe::all_saw() {
  const auto in_vain = [](const std::vector<double>& times) { return !times.empty() && times.back() < 0; };
  const bool mine = !in_vain(result_.seen_by_stat) && !in_vain(result_.seen_by_list) && !in_vain(result_.seen_grown);
  const Json all = probe_.line.meet(mine);
  return std::ranges::all_of(all, [](const Json& saw) { return saw.get<bool>(); });
}

void StorageProbe::sight() {
  for (int round = 0; round < sights; ++round) {
    doing("making a file that others look for");
    if (writer()) note("visibility", show(round));
    meet();
    if (!writer()) look(round);
    meet();
    if (writer() && grown_) note("visibility", grow());
    meet();
    if (!writer()) look_at_growth(round);
    if (!all_saw()) break;
  }
}

void StorageProbe::space() {
  doing("free_space");
  if (writer()) measure_space();
  const std::int64_t free = probe_.line.meet(result_.free_bytes)[0].get<std::int64_t>();
  bytes_ = probe_.work.at("bytes").get<std::int64_t>();
  // What is nearly full must not be filled up by a probe.
  if (free >= 0) bytes_ = std::clamp<std::int64_t>(free / (4 * probe_.ranks), page, bytes_);
}

void StorageProbe::measure_space() {
  const Result<std::int64_t> free = files_->free_space();
  if (free) result_.free_bytes = *free;
  if (!free) note("free space", free.error());
  struct statvfs about {};
  // A file system without a table of inodes says 0 of 0.
  if (::statvfs(directory_.c_str(), &about) == 0 && about.f_files > 0) {
    result_.free_inodes = static_cast<std::int64_t>(about.f_favail);
  }
}

Status StorageProbe::write_alone() {
  doing("writing alone");
  result_.moved_alone = bytes_;
  const Clock::time_point began = Clock::now();
  FD_TRY_VOID(write_file("alone", result_.moved_alone, 3));
  result_.write_alone_seconds = ms_since(began) / 1e3;
  return files_->remove(path("alone"));
}

Status StorageProbe::read_back(const std::string& name, std::uint8_t number) {
  FD_TRY_VOID(files_->drop_cache(path(name)));
  FD_TRY(const std::unique_ptr<File> file, files_->open(path(name)));
  const Value expected = pattern(std::min(result_.moved, chunk), number);
  for (std::int64_t offset = 0; offset < result_.moved; offset += chunk) {
    const std::int64_t size = std::min(chunk, result_.moved - offset);
    FD_TRY(const Value bytes, file->read(offset, size));
    if (!std::ranges::equal(bytes.bytes(), expected.bytes().first(static_cast<std::size_t>(size)))) {
      ++result_.read_wrong;
      return {};
    }
  }
  return {};
}

void StorageProbe::bandwidth() {
  result_.moved = bytes_;
  doing("writing with all ranks");
  meet();
  Clock::time_point began = Clock::now();
  const auto number_of = [](int rank) { return static_cast<std::uint8_t>(16 + rank % 200); };
  note("write", write_file(fmt::format("rank-{}", probe_.rank), result_.moved, number_of(probe_.rank)));
  result_.write_seconds = ms_since(began) / 1e3;
  doing("reading back with all ranks");
  meet();
  const int other = (probe_.rank + 1) % probe_.ranks;
  began = Clock::now();
  note("read back", read_back(fmt::format("rank-{}", other), number_of(other)));
  result_.read_seconds = ms_since(began) / 1e3;
  meet();
}

Status StorageProbe::remove_all() {
  FD_TRY(const std::vector<std::string> names, files_->list(scratch_));
  for (const std::string& name : names) FD_TRY_VOID(files_->remove(path(name)));
  return files_->remove(scratch_);
}

void StorageProbe::clean() {
  doing("removing what the probe has made");
  if (writer()) note("remove", remove_all());
}

}  // namespace

Json probe_storage(const Probe& probe) { return StorageProbe(probe).run(); }

}  // namespace firedrill::preflight
