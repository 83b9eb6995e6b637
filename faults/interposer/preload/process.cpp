#include "faults/interposer/preload/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/base/text.h"
#include "faults/interposer/preload/faults.h"
#include "faults/interposer/preload/held.h"

namespace firedrill::interposer {
namespace {

constinit Process the_process;
constinit thread_local Thread the_thread __attribute__((tls_model("initial-exec")));
pthread_once_t configured = PTHREAD_ONCE_INIT;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// The first variable that is set and not empty, as a whole number plus `shift`; `otherwise` if none is.
std::int32_t number_in(std::initializer_list<const char*> names, std::int32_t otherwise, std::int32_t shift = 0) {
  for (const char* name : names) {
    const std::string text = variable(name);
    if (text.empty()) continue;
    if (std::string_view(name) == "FIREDRILL_RANK" && text == "communicator") return otherwise;
    const auto number = parse_whole(text);
    if (!number || *number > (1U << 30)) {
      give_up(fmt::format("{}={} is no whole number (remedy: correct or unset it)", name, text).c_str());
    }
    return static_cast<std::int32_t>(*number) + (std::string_view(name).starts_with("FIREDRILL") ? 0 : shift);
  }
  return otherwise;
}

void prepare_fork() { ::pthread_mutex_lock(&the_process.making); }
void after_fork_in_parent() { ::pthread_mutex_unlock(&the_process.making); }
// The parent's ring is the parent's: a child that calls NCCL gets its own. Its mutexes are made anew, since their
// owners are not in the child.
void after_fork_in_child() {
  the_process.making = PTHREAD_MUTEX_INITIALIZER;
  the_process.ready.store(false);
  the_process.ring = {};
  the_process.active.store(0);
  the_thread = {};
  forget_held_call();
}

// Where it lies as the program starts: the program may go elsewhere before its first call of NCCL.
std::string absolute(std::string path) {
  char here[4096];
  if (path.empty() || path[0] == '/' || !::getcwd(here, sizeof here)) return path;
  return std::string(here) + "/" + path;
}

void configure() {
  auto* options = new RingOptions{};
  options->folder = absolute(variable("FIREDRILL_NCCL_DIR"));
  options->plan = variable("FIREDRILL_PLAN");
  options->capacity = static_cast<std::uint32_t>(number_in({"FIREDRILL_NCCL_RING"}, 4096));
  if (options->capacity > (1U << 22)) give_up("FIREDRILL_NCCL_RING is above 4194304 entries (remedy: give fewer)");
  options->process_rank =
      number_in({"FIREDRILL_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, unknown);
  options->attempt = number_in({"FIREDRILL_ATTEMPT", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}, 1, 1);
  auto* plan = new NcclPlan{};
  if (!options->plan.empty()) {
    auto read = read_nccl_plan(options->plan);
    if (!read) give_up(describe(read.error()).c_str());
    *plan = *std::move(read);
    if (options->folder.empty()) {
      give_up(
          "FIREDRILL_PLAN is set and FIREDRILL_NCCL_DIR is not (remedy: set it to a fresh folder for each run; its "
          "journal tells which faults of the run have fired)");
    }
    if (const Status status = claim_folder(options->folder); !status) give_up(describe(status.error()).c_str());
  }
  if (options->folder.empty()) options->folder = fmt::format("/dev/shm/firedrill-nccl-{}", ::geteuid());
  options->plan_digest = plan->digest;
  options->faults = static_cast<std::uint32_t>(plan->faults.size());
  the_process.plan = plan;
  the_process.options = options;
  ::pthread_atfork(prepare_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((constructor)) void before_main() { ::pthread_once(&configured, configure); }

__attribute__((destructor)) void after_main() {
  if (!the_process.ready.load(std::memory_order_acquire)) return;
  report_unfired();
  the_process.ring.header->ended.store(1);
}

}  // namespace

Process& process() noexcept { return the_process; }

Thread& this_thread() noexcept {
  if (the_thread.id == 0) [[unlikely]]
    the_thread.id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return the_thread;
}

void start_slowly() noexcept {
  ::pthread_once(&configured, configure);  // a constructor of another library may call NCCL before ours has run
  ::pthread_mutex_lock(&the_process.making);
  if (!the_process.ready.load(std::memory_order_relaxed)) {
    Result<Ring> ring = make_ring(*the_process.options);
    if (!ring) give_up(describe(ring.error()).c_str());
    the_process.ring = *ring;
    open_journal();
    arm_faults();
    the_process.ready.store(true, std::memory_order_release);
  }
  ::pthread_mutex_unlock(&the_process.making);
}

void give_up(const char* message) noexcept {
  std::fprintf(stderr, "firedrill-nccl: %s\n", message);
  std::fflush(stderr);
  ::_exit(1);
}

}  // namespace firedrill::interposer
