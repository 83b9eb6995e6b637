// What a rank can see of its machine. From the system's own files.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "engine/model/numerics.h"
#include "engine/os/wall_clock.h"
#include "engine/train/device/job_compute.h"
#include "harness/preflight/control_groups.h"
#include "harness/preflight/machine.h"
#include "harness/preflight/probes.h"

namespace firedrill::preflight {
namespace {

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "MemAvailable:  123 kB" of a file of the system, in bytes; -1: not there.
std::int64_t kilobytes(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key + ":")) continue;
    return std::strtoll(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  }
  return -1;
}

double cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const double allowed = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return ControlGroups().cores_within(allowed);
}

std::int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::int64_t shared_memory() {
  struct statvfs about {};
  if (::statvfs("/dev/shm", &about) != 0) return 0;
  return static_cast<std::int64_t>(about.f_bavail) * static_cast<std::int64_t>(about.f_frsize);
}

// Of the library that a program would load here; empty: there is none.
std::string nccl_version() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(::dlsym(library, "ncclGetVersion"));
  int version = 0;
  const bool got = get != nullptr && get(&version) == 0;
  ::dlclose(library);
  return got ? fmt::format("{}", version) : "";
}

// The offset o of this clock against rank 0's, by meetings. Who leaves a meeting does so after everybody has come to
// it: so o <= (when this rank left) - (when rank 0 came), and o >= (when this rank came) - (when rank 0 left).
void compare_clocks(const Probe& probe, MachineOfRank& machine) {
  constexpr int meetings = 8;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  std::int64_t came_before = 0;
  std::int64_t left = 0;
  for (int i = 0; i < meetings; ++i) {
    const std::int64_t came = wall_clock_now().count();
    const Json all = probe.line.meet({{"came", came}, {"left_before", left}});
    left = wall_clock_now().count();
    highest = std::min(highest, left - all[0]["came"].get<std::int64_t>());
    if (i > 0) lowest = std::max(lowest, came_before - all[0]["left_before"].get<std::int64_t>());
    came_before = came;
  }
  machine.clock_offset = lowest + (highest - lowest) / 2;
  machine.clock_error = (highest - lowest) / 2;
}

}  // namespace

void to_json(Json& json, const MachineOfRank& rank) {
  json = {{"host", rank.host},
          {"cores", rank.cores},
          {"memory_total", rank.memory_total},
          {"memory_available", rank.memory_available},
          {"memory_own", rank.memory_own},
          {"address_space", rank.address_space},
          {"files", rank.files},
          {"processes", rank.processes},
          {"locked_memory", rank.locked_memory},
          {"shared_memory", rank.shared_memory},
          {"clock_offset", rank.clock_offset},
          {"clock_error", rank.clock_error},
          {"numerics", rank.numerics},
          {"numerics_again", rank.numerics_again},
          {"nccl", rank.nccl},
          {"driver", rank.driver}};
}

void from_json(const Json& json, MachineOfRank& rank) {
  json.at("host").get_to(rank.host);
  json.at("cores").get_to(rank.cores);
  json.at("memory_total").get_to(rank.memory_total);
  json.at("memory_available").get_to(rank.memory_available);
  json.at("memory_own").get_to(rank.memory_own);
  json.at("address_space").get_to(rank.address_space);
  json.at("files").get_to(rank.files);
  json.at("processes").get_to(rank.processes);
  json.at("locked_memory").get_to(rank.locked_memory);
  json.at("shared_memory").get_to(rank.shared_memory);
  json.at("clock_offset").get_to(rank.clock_offset);
  json.at("clock_error").get_to(rank.clock_error);
  json.at("numerics").get_to(rank.numerics);
  json.at("numerics_again").get_to(rank.numerics_again);
  json.at("nccl").get_to(rank.nccl);
  json.at("driver").get_to(rank.driver);
}

Json probe_machine(const Probe& probe) {
  MachineOfRank machine;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  machine.host = host.data();
  probe.line.doing("reading what the system says of this machine");
  machine.cores = cores();
  machine.memory_total = kilobytes("/proc/meminfo", "MemTotal");
  machine.address_space = limit_of(RLIMIT_AS);
  machine.files = limit_of(RLIMIT_NOFILE);
  machine.processes = limit_of(RLIMIT_NPROC);
  machine.locked_memory = limit_of(RLIMIT_MEMLOCK);
  machine.shared_memory = shared_memory();
  machine.driver = first_line("/proc/driver/nvidia/version");
  if (probe.work.at("gpu").get<bool>()) machine.nccl = nccl_version();
  probe.line.doing("the numerics probe");
  Job job;
  job.device = probe.work.at("gpu").get<bool>() ? Device::cuda : Device::cpu;
  job.numerics = probe.work.at("native").get<bool>() ? Numerics::native : Numerics::pinned;
  set_numerics(job.numerics);
  machine.numerics = numerics_key_of(job);
  machine.numerics_again = numerics_key_of(job);
  machine.memory_own = kilobytes("/proc/self/status", "VmRSS");
  // When all are as large as they get before any work.
  probe.line.meet();
  machine.memory_available = ControlGroups().memory_within(kilobytes("/proc/meminfo", "MemAvailable"));
  probe.line.doing("comparing clocks");
  compare_clocks(probe, machine);
  return machine;
}

}  // namespace firedrill::preflight
