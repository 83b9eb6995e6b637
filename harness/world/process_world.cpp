#include "harness/world/process_world.h"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "engine/os/directory_file_system.h"
#include "engine/os/pulse_board.h"
#include "engine/os/tcp_store.h"
#include "engine/os/zygote.h"
#include "harness/history/recorder.h"
#include "harness/world/process_attempt.h"
#include "harness/world/process_rank.h"

namespace firedrill {
namespace {

Error no_directory(const std::filesystem::path& path, const std::error_code& error) {
  return Error{.code = Code::io_error,
               .message = fmt::format("no directory {} for the checkpoints: {}", path.string(), error.message()),
               .hint = "give another one with --out, or set TMPDIR"};
}

// The disk of a world: `directory`/disk, or a temporary directory that ends with it.
class DiskDirectory {
 public:
  static Result<std::unique_ptr<DiskDirectory>> make(const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::path root = directory;
    if (root.empty()) {
      std::string pattern = (std::filesystem::temp_directory_path(error) / "firedrill-XXXXXX").string();
      if (error || ::mkdtemp(pattern.data()) == nullptr) {
        return no_directory(pattern, error ? error : std::error_code(errno, std::generic_category()));
      }
      root = pattern;
    }
    auto disk = std::unique_ptr<DiskDirectory>(new DiskDirectory(root, directory.empty()));
    std::filesystem::create_directories(disk->path(), error);
    if (error) return no_directory(disk->path(), error);
    return disk;
  }
  ~DiskDirectory() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(root_, ignored);
  }
  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  std::filesystem::path path() const { return root_ / "disk"; }

 private:
  DiskDirectory(std::filesystem::path root, bool temporary) : root_(std::move(root)), temporary_(temporary) {}

  std::filesystem::path root_;
  bool temporary_;
};

}  // namespace

struct ProcessWorld::Impl {
  Impl(const Subject& given_subject, Prober& given_prober, History& given_history)
      : subject(given_subject),
        prober(given_prober),
        history(given_history),
        recorder(history, [this] { return epoch.elapsed(); }) {}

  std::string payload_for(const AttemptOrder& order, const PulseBoard& board) const {
    return to_payload(RankAssignment{.plan = to_json(subject.plan),
                                     .floor = order.floor,
                                     .fired = order.fired,
                                     .other_layout = order.other_layout,
                                     .epoch = epoch,
                                     .store_port = store->port(),
                                     .disk = std::filesystem::absolute(disk->path()).string(),
                                     .pulses = board.path(),
                                     .corpus_digest = subject.identity.corpus_digest,
                                     .numerics_key = subject.identity.numerics_key});
  }

  std::optional<Termination> termination;  // outlives all that must be cleaned up before the signal has its effect
  const Subject& subject;
  Prober& prober;
  History& history;
  std::function<void(const Event&)> heard;
  const Epoch epoch = Epoch::now();
  HistoryRecorder recorder;
  DirectCompute compute;
  std::unique_ptr<DiskDirectory> disk;
  std::unique_ptr<DirectoryFileSystem> files;
  std::unique_ptr<ZygoteLauncher> launcher;
  std::unique_ptr<TcpStoreServer> store;
};

ProcessWorld::ProcessWorld(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProcessWorld::~ProcessWorld() = default;

Result<std::unique_ptr<ProcessWorld>> ProcessWorld::start(const Subject& subject, Prober& prober, History& history,
                                                          const ProcessOptions& options) {
  auto impl = std::make_unique<Impl>(subject, prober, history);
  impl->heard = options.heard;
  FD_TRY(Termination termination, Termination::watch());
  impl->termination.emplace(std::move(termination));
  FD_TRY(impl->disk, DiskDirectory::make(options.directory));
  FD_TRY(impl->files, DirectoryFileSystem::open_root(impl->disk->path()));
  FD_TRY(impl->launcher, ZygoteLauncher::start_zygote());
  FD_TRY(impl->store, TcpStoreServer::start());
  return std::unique_ptr<ProcessWorld>(new ProcessWorld(std::move(impl)));
}

Result<AttemptResult> ProcessWorld::run_attempt(const AttemptOrder& order) {
  std::this_thread::sleep_for(order.pause);
  const std::unique_ptr<LivenessRules> rules = impl_->subject.liveness();
  const int ranks = impl_->subject.plan.layout_if(order.other_layout).world_size();
  FD_TRY(const PulseBoard board, PulseBoard::make(ranks));
  ProcessAttempt attempt(*impl_->launcher, impl_->epoch, impl_->history, *impl_->termination, impl_->subject.plan,
                         *rules, board, order.attempt, impl_->heard);
  FD_TRY_VOID(attempt.start(ranks, impl_->payload_for(order, board)));
  return attempt.run();
}

void ProcessWorld::probe() {
  const int attempt = impl_->history.size() > 0 ? impl_->history[impl_->history.size() - 1].attempt : 0;
  const ProbeView view = ProbeView::processes_die;
  impl_->recorder.event(Event{.kind = EventKind::probe,
                              .attempt = attempt,
                              .a = impl_->prober.ask(*impl_->files, impl_->compute, view),
                              .b = static_cast<std::int64_t>(view),
                              .c = attempt});
}

Observer& ProcessWorld::observer() { return impl_->recorder; }

int zygote_main(int, char**, const MutantParts& make) {
  return run_zygote([] {}, [make](RankStart start) { return run_process_rank(std::move(start), make); });
}

}  // namespace firedrill
