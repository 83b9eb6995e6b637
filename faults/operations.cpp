#include "faults/operations.h"

#include <initializer_list>

#include "engine/base/check.h"
#include "faults/trigger.h"

namespace firedrill {
namespace {

Operations all_of(std::initializer_list<FileOp> files, std::initializer_list<SeamOp> others = {}) {
  Operations all;
  for (const FileOp op : files) all |= only(op);
  for (const SeamOp op : others) all |= only(op);
  return all;
}

// A collective and what it is made of; reductions compute as well.
Operations collective() { return all_of({}, {SeamOp::collective, SeamOp::send, SeamOp::recv}); }
Operations computing() { return only(SeamOp::compute); }
// A file that is opened and read whole, its size asked first.
Operations reading() { return all_of({FileOp::open, FileOp::stat, FileOp::read}); }
// An empty file with a durable name.
Operations marking() { return all_of({FileOp::create, FileOp::sync, FileOp::close, FileOp::sync_directory}); }
Operations writing() { return marking() | only(FileOp::write); }

// A mark, perhaps in the place of one whose name may not be durable. It is empty, so nothing is written.
Operations marking_anew() {
  return marking() | reading() | all_of({FileOp::rename, FileOp::remove, FileOp::drop_cache});
}

Operations in_save(bool coordinator) {
  Operations all = collective() | computing() | writing();
  if (coordinator) all |= all_of({FileOp::free_space, FileOp::make_directory});
  return all;
}

Operations in_commit(bool coordinator) {
  if (!coordinator) return collective();
  return collective() | computing() | writing() | only(FileOp::rename);
}

Operations in_validate(bool coordinator) {
  const Operations all = collective() | computing() | reading() | only(FileOp::drop_cache);
  return coordinator ? all | marking() : all;
}

// Without any exchange: the peers have gone on to train.
Operations in_retire(bool coordinator) {
  if (!coordinator) return {};
  return marking_anew() | only(FileOp::list);
}

Operations in_find(bool coordinator, bool first_attempt) {
  Operations all = collective() | only(FileOp::list);
  if (!first_attempt) all |= computing() | reading() | only(FileOp::drop_cache);
  // Its record of what it has seen is read back.
  if (coordinator) all |= writing() | marking_anew();
  return all;
}

Operations in_restore(bool coordinator) {
  const Operations all = collective() | computing() | all_of({FileOp::open, FileOp::read});
  return coordinator ? all | marking_anew() : all;
}

Operations in_rendezvous(bool coordinator) {
  const Operations all = collective() | only(SeamOp::store);
  return coordinator ? all | marking() | all_of({FileOp::list, FileOp::make_directory}) : all;
}

// RocksDB's files: written by the coordinator wherever the catalog changes, and opened again after an error; read whole
// by whoever looks into it.
Operations of_rocksdb(Phase phase, bool coordinator) {
  const Operations looking = reading() | all_of({FileOp::list, FileOp::drop_cache});
  const bool looks = phase == Phase::validate || phase == Phase::find;
  if (!coordinator) return looks ? looking | computing() : Operations();
  const bool changes = saves(phase) || before_the_first_step(phase);
  if (!changes || phase == Phase::save) return {};
  return looking | writing() | all_of({FileOp::rename, FileOp::remove}) | (looks ? computing() : Operations());
}

bool can_match(const Where& at, Phase phase, const Job& job) {
  if (at.phase) return phase == *at.phase;
  if (phase == Phase::restore && at.attempt == 1) return false;
  // A step that the job has not is another mistake.
  if (!at.step || *at.step < 0 || *at.step > job.steps || phase == Phase::none) return true;
  if (before_the_first_step(phase)) return *at.step == 0;
  return *at.step > 0 && (!saves(phase) || save_due(*at.step, job));
}

}  // namespace

Operations only(FileOp op) { return Operations().set(static_cast<std::size_t>(op)); }

Operations only(SeamOp op) {
  if (op != SeamOp::file) return Operations().set(static_cast<std::size_t>(op) + file_op_count);
  Operations files;
  for (int i = 0; i < file_op_count; ++i) files |= only(static_cast<FileOp>(i));
  return files;
}

std::string names_of(const Operations& operations) {
  std::string names;
  std::size_t left = operations.count();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!operations[i]) continue;
    names += i < file_op_count ? to_string(static_cast<FileOp>(i)) : to_string(static_cast<SeamOp>(i - file_op_count));
    --left;
    if (left > 0) names += left == 1 ? " or " : ", ";
  }
  return names;
}

Operations operations_in(Phase phase, bool coordinator, bool first_attempt, CatalogKind catalog) {
  if (catalog == CatalogKind::rocksdb) {
    return operations_in(phase, coordinator, first_attempt, CatalogKind::files) | of_rocksdb(phase, coordinator);
  }
  switch (phase) {
    case Phase::none: return collective() | computing();  // the first parameters; the end of a rank
    case Phase::input: return computing() | only(SeamOp::input);
    case Phase::forward:
    case Phase::backward:
    case Phase::optimizer: return computing();
    case Phase::exchange: return collective() | computing() | only(SeamOp::store);  // whether to leave
    case Phase::save: return in_save(coordinator);
    case Phase::commit: return in_commit(coordinator);
    case Phase::validate: return in_validate(coordinator);
    case Phase::retire: return in_retire(coordinator);
    case Phase::find: return in_find(coordinator, first_attempt);
    case Phase::restore: return in_restore(coordinator);
    case Phase::rendezvous: return in_rendezvous(coordinator);
  }
  fail_check(__FILE__, __LINE__, "phase", "a phase that is not in the table");
}

Operations operations_at(const Where& at, const Job& job) {
  Operations all;
  for (int i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (can_match(at, phase, job)) all |= operations_in(phase, at.rank == 0, at.attempt == 1, job.checkpoint.catalog);
  }
  return all;
}

Operations operations_of_kind(FaultKind kind) {
  Operations all;
  for (int i = 0; i < seam_op_count; ++i) {
    if (can_be_about(kind, static_cast<SeamOp>(i))) all |= only(static_cast<SeamOp>(i));
  }
  return all;
}

Operations operations_of(const FaultSpec& fault) {
  const Where& at = fault.at;
  Operations about = at.op ? only(*at.op) : Operations().set();
  if (at.file_op) about &= only(*at.file_op);
  if (!at.path.empty()) about &= only(SeamOp::file);
  for (int i = 0; i < file_op_count; ++i) {
    const auto op = static_cast<FileOp>(i);
    if (!kind_fits(fault.kind, {.op = SeamOp::file, .file_op = op, .path = {}})) about &= ~only(op);
  }
  return about & operations_of_kind(fault.kind);
}

bool saves(Phase phase) {
  return phase == Phase::save || phase == Phase::commit || phase == Phase::validate || phase == Phase::retire;
}

bool before_the_first_step(Phase phase) {
  return phase == Phase::find || phase == Phase::restore || phase == Phase::rendezvous;
}

bool save_due(std::int64_t step, const Job& job) {
  const int every = job.checkpoint.every;
  return step == job.steps || (every > 0 && step > 0 && step % every == 0);
}

}  // namespace firedrill
