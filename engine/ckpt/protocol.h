// Protocol: how a checkpoint is published, found and restored (design, section 6). One object per rank and attempt. All
// ranks of the world call the same functions in the same order:
//
//   claim_attempt -> find -> [restore] -> publish -> publish -> ...
//
// Each virtual function is one step of the protocol with its right behaviour; whoever wants another one overrides that
// step only. Steps marked "coordinator" run on member 0 of the world only, and what they return reaches all ranks.
//
// What must hold at each point:
// - Nothing but the rename of its manifest makes a checkpoint discoverable, and before that rename every byte and every
//   name it speaks of is durable.
// - Success is reported (acknowledged) after the VALIDATED mark is durable, never before.
// - All ranks take the same decision, because each decision is made on what an exchange gave all of them.
// - Nothing is deleted before two (keep_validated) newer ones are validated, and never what another rank may be
// reading:
//   the exchange behind the trial restore is passed by no rank that still reads.
//
// Errors: an error of a rank's own disk is shared at the next exchange and becomes everybody's. dead, fenced, aborted
// and timeout of a collective end the call at once. Threads: one call at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/ckpt/catalog.h"
#include "engine/ckpt/context.h"
#include "engine/ckpt/state.h"

namespace firedrill {

class Protocol {
 public:
  static constexpr int tries_max = 3;  // one try and two new ones

  virtual ~Protocol() = default;  // GCOV_EXCL_LINE: the linker may keep the copy of a file that is not counted

  // Makes missing directories (synced) and claims attempts/<n> for this attempt alone. Errors: already_exists (somebody
  // else claimed it).
  Status claim_attempt(const CheckpointContext& ctx);

  // Agrees with all ranks on the newest checkpoint that is whole, makes what it found durable, marks newer damaged
  // ones, and records what this attempt accepts (attempts/<n>.seen). Emits found, and started_fresh if there is none.
  // Errors: corrupted (only damaged ones), mismatch (of another run, job or corpus, or of a newer format; or below the
  // floor), unavailable (storage does not answer alike on all ranks).
  Result<FindResult> find(const CheckpointContext& ctx);

  // Reads what `into` lists (names, shapes, types; its Values are not looked at) from the checkpoint found, and sets
  // the Values when every rank has succeeded; marks the checkpoint VALIDATED if it was not. Tensors are found by name
  // and range, so any number of ranks may restore what another number saved. Emits restored. Errors: corrupted;
  // mismatch (a missing, an unexpected or a differently shaped tensor).
  Status restore(const CheckpointContext& ctx, const FindResult& found, StateView& into);

  // Saves `snapshot` as the state after `step`. When it returns well, the checkpoint is validated and durable and
  // acknowledged has been emitted. `snapshot` holds Values, which nobody changes: training may go on. Emits
  // save_started, shard_written, committed, validated, acknowledged, retired, save_failed. Errors: `retryable` what
  // failed every try on all ranks alike, so that they may all go on and publish a later step; not so what one rank may
  // be alone with, and our own bugs.
  Result<Publication> publish(const CheckpointContext& ctx, std::int64_t step, const StateView& snapshot,
                              const Digest& state_digest);

  // What this disk alone would yield. Reads only; takes part in nothing. For probes and tools.
  Discovery discover(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                     WholeCandidates* whole = nullptr);

 protected:
  // How much of a candidate one rank checks.
  struct Scope {
    int share = 0;  // digests of whole shards with rank % shares == share; existence, size, provenance of all
    int shares = 1;
    bool drop_caches = false;
  };
  // A checkpoint that retention knows of.
  struct Known {
    enum class Standing : std::uint8_t {
      committed,  // a candidate without its mark
      validated,
      dropped,  // invisible, rejected, half deleted, or of a try that failed behind its rename
    };
    CheckpointId id;
    Standing standing = Standing::committed;
  };

  // --- Publish -----------------------------------------------------------------------------------------------------
  // Where the shards of a try lie: a directory that no other try ever uses.
  virtual std::string shard_directory(const CheckpointId& id) const;
  // Coordinator: room enough for `bytes`, and a new directory whose name is durable.
  virtual Status open_try(const CheckpointContext& ctx, const std::string& directory, std::int64_t bytes);
  // One shard file: created exclusively, written in one call, synced.
  virtual Status write_shard(const CheckpointContext& ctx, const std::string& path, const Value& bytes);
  // Coordinator: the manifest to a temporary name, synced, renamed, its parent synced. `rename_issued` says whether the
  // try may be removed when this fails.
  virtual Status commit(const CheckpointContext& ctx, const CheckpointId& id, const Value& manifest,
                        bool& rename_issued);
  // Reads back what another rank wrote, caches dropped, and compares with the digests of its snapshot. `reports` are
  // those of all ranks; `manifest` is the digest of the committed text.
  virtual Status trial_restore(const CheckpointContext& ctx, const CheckpointId& id, const Value& reports,
                               const Digest& manifest);
  // Coordinator: the mark, durable with its name.
  virtual Status mark_validated(const CheckpointContext& ctx, const CheckpointId& id);
  // Which of the known checkpoints go, once the newest validated one is durable.
  virtual std::vector<CheckpointId> victims(const std::vector<Known>& known, int keep_validated) const;
  // Coordinator: synced tombstones, then the manifests, synced, then the shards.
  virtual Status retire(const CheckpointContext& ctx, const std::vector<CheckpointId>& ids);

  // --- Find and restore --------------------------------------------------------------------------------------------
  // What this disk lists.
  virtual Result<Survey> survey(FileSystem& files);
  // What counts of what the ranks' disks list, by member: all of it.
  virtual Result<Survey> take_together(const std::vector<Survey>& surveys, int me) const;
  // The ids that may be used: listed, visible by every later attempt's .seen, neither rejected nor being deleted.
  // Newest first.
  virtual std::vector<CheckpointId> candidates(const Survey& survey) const;
  // Opens and checks one candidate on this disk. Errors: corrupted or io_error (damage, if confirmed); not_found (the
  // manifest is not there); mismatch.
  virtual Result<ManifestView> verify(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                                      const CheckpointId& id, const Scope& scope);
  Result<ManifestView> verify_once(FileSystem& files, Compute& compute, const ExpectedRun& expectation,
                                   const CheckpointId& id, WholeCandidates* whole);
  // Whether the job may begin at what was found, or at step 0 if nothing was. Never in silence below what was
  // acknowledged, nor at step 0 while something is listed. Errors: corrupted, mismatch. Called on all ranks.
  virtual Status allow_start(const CheckpointContext& ctx, const Survey& survey, const FindResult& result) const;
  // Coordinator: makes durable what was perhaps found in a cache only.
  virtual Status settle(const CheckpointContext& ctx, const CheckpointId& id,
                        const std::vector<CheckpointId>& validated);
  // Coordinator: marks damaged candidates, durably, behind an older one verified whole.
  virtual Status reject(const CheckpointContext& ctx, const std::vector<Damage>& damaged);
  // Coordinator: attempts/<n>.seen, durable.
  virtual Status record_seen(const CheckpointContext& ctx, const std::vector<CheckpointId>& accepted);
  // Sees the decoded state before it becomes the live one. Called on all ranks.
  virtual Status restored(const CheckpointContext& ctx, const FindResult& found, StateView& state);

  // --- Both ways ---------------------------------------------------------------------------------------------------
  // A list without values as it is written and read: under which names, and who of those that hold the same saves what.
  virtual StateView as_saved(StateView list) const;

  // --- For overriding steps ----------------------------------------------------------------------------------------
  // Creates `path`, writes, syncs, closes. Its name is not durable yet.
  static Status write_synced(FileSystem& files, std::string_view path, const Value& bytes);
  // An empty file in `directory`, durable with its name; one that is there already is replaced.
  static Status write_mark(FileSystem& files, std::string_view directory, const CheckpointId& id);
  // Removes a directory and the files in it; what is not there is no error.
  static Status remove_tree(FileSystem& files, const std::string& directory);
  const std::vector<Known>& known() const { return known_; }

 private:
  struct Try;

  // The catalog of this job's kind; the coordinator's keeps what it has open.
  Catalog& catalog_for(const Job& job, Compute& compute);
  Result<std::optional<Error>> run_try(const CheckpointContext& ctx, Try& current);
  Result<std::optional<Error>> save_shards(const CheckpointContext& ctx, Try& current);
  Result<std::optional<Error>> commit_try(const CheckpointContext& ctx, Try& current);
  Result<std::optional<Error>> validate_try(const CheckpointContext& ctx, Try& current);
  Status clean_up(const CheckpointContext& ctx, const Try& failed);
  Status retain(const CheckpointContext& ctx);
  Status erase_buried(const CheckpointContext& ctx, const std::vector<CheckpointId>& ids);
  Status sweep(const CheckpointContext& ctx);

  Result<Survey> agree_on_survey(const CheckpointContext& ctx);
  Result<std::optional<Damage>> judge(const CheckpointContext& ctx, const CheckpointId& id, ManifestView& manifest);
  void remember(const Survey& survey, const FindResult& result);
  void remember(const CheckpointId& id, Known::Standing standing);
  const Value& structure_of(const StateView& state);

  std::unique_ptr<Catalog> catalog_;
  CatalogKind catalog_kind_ = CatalogKind::files;
  Compute* compute_ = nullptr;  // of the last call

  StateView structure_;    // Values left out: what structure_value_ describes
  Value structure_value_;  // kept because a state's structure seldom changes
  std::vector<Known> known_;
  std::vector<CheckpointId> tombstones_;     // of the retirement before
  std::vector<CheckpointId> buried_before_;  // by earlier attempts, as found
  std::int64_t last_step_ = -1;              // of the publish before, and its last try: no name is used twice
  std::int64_t last_trial_ = 0;
  bool sweep_due_ = false;
};

}  // namespace firedrill
