// Probe: what discovery would find on a disk as it is now, and what the audit, an independent decoder, says of it.
// Asked after every operation that changes the disk; the answer for a view seen before is looked up by the view's
// digest, and that for a new one by names, records and what is known of the checkpoints in it.
//
// Threads: one. Errors: none; trouble is part of the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/ckpt/protocol.h"
#include "harness/audit/audit.h"
#include "harness/history/history.h"

namespace firedrill {

// What is known of contents of the disk, by a digest of them: an answer for each view. Most trials ask for contents
// that earlier ones have had, in an order of their own: a table of short rows costs one cache miss where a map of nodes
// costs three.
class ProbeAnswers {
 public:
  static constexpr std::int32_t unknown = -1;
  struct Row {
    Digest content;
    std::int32_t by_view[probe_view_count] = {unknown, unknown};
  };
  // Valid until the next call. A row that is not there yet is counted as used: whoever asks fills it in.
  Row& of(const Digest& content);

 private:
  std::size_t slot_of(const Digest& content) const;
  std::vector<Row> slots_;  // open addressing; free while nothing is known
  std::size_t used_ = 0;
};

// Who is asked: the discovery of the engine under test (a mutant's, where there is one) for one run.
class Prober {
 public:
  // What probers may share: an auditor, which then decodes a checkpoint once for all of them, and, those of one run and
  // protocol in several layouts, their answers about whole checkpoints.
  struct Shared {
    Auditor* auditor = nullptr;
    ProbeAnswers* of_whole = nullptr;
  };
  // All must outlive the prober. It keeps answers, so it serves one protocol and one run identity only.
  Prober(std::unique_ptr<Protocol> protocol, const Job& job, const RunIdentity& identity, Tables& tables,
         const Shared& shared)
      : protocol_(std::move(protocol)),
        job_(job),
        identity_(identity),
        tables_(tables),
        auditor_(shared.auditor == nullptr ? own_auditor_ : *shared.auditor),
        of_whole_(shared.of_whole) {}
  Prober(std::unique_ptr<Protocol> protocol, const Job& job, const RunIdentity& identity, Tables& tables)
      : Prober(std::move(protocol), job, identity, tables, Shared{}) {}

  // The digest of a view in which each committed checkpoint counts as what the function says of its mark; nothing: the
  // disk cannot tell.
  using ByClass = std::function<std::optional<Digest>(const std::function<Digest(const Digest& mark)>& class_of)>;

  // Looks at the disk. Returns the index of the answer in the probe table.
  std::int64_t ask(FileSystem& files, Compute& compute, ProbeView view, const Auditor::ContentMark& mark = {});

  // The same, looked up by the digest of the view, and then by what its checkpoints are: whole ones of equal states
  // give equal answers, whatever layout wrote them. `make_files` is called only for a view of which neither was seen
  // before. 1 hit in 10,000 (of the second kind in 500) is asked again, without marks, and compared, and a difference
  // fails a check.
  template <class MakeFiles>
  std::int64_t ask(const Digest& view_digest, Compute& compute, ProbeView view, MakeFiles&& make_files,
                   const Auditor::ContentMark& mark = {}, const ByClass& by_class = {}) {
    // Most operations change nothing of a view.
    Last& last = last_[static_cast<std::size_t>(view)];
    if (last.known && last.view == view_digest && (hits_ + 1) % recheck_every != 0) {
      ++hits_;
      return last.answer;
    }
    const auto fresh = [&](bool marked) {
      return ask(*make_files(), compute, view, marked ? mark : Auditor::ContentMark());
    };
    last.answer = look_up(view_digest, view, std::ref(fresh), by_class);
    last.view = view_digest;
    last.known = true;
    return last.answer;
  }

 private:
  static constexpr std::uint64_t recheck_every = 10'000;
  static constexpr std::uint64_t recheck_whole_every = 500;
  using Fresh = std::function<std::int64_t(bool marked)>;

  std::int64_t look_up(const Digest& view_digest, ProbeView view, const Fresh& fresh, const ByClass& by_class);
  std::int64_t look_up_whole(ProbeView view, const Fresh& fresh, const ByClass& by_class);
  Digest class_of(const Digest& mark);
  std::int64_t as_seen_in(ProbeView view, std::int64_t answer);
  void recheck(std::int64_t kept, std::int64_t fresh) const;

  std::unique_ptr<Protocol> protocol_;
  const Job& job_;
  const RunIdentity& identity_;
  Tables& tables_;
  WholeCandidates whole_;
  Auditor own_auditor_;
  Auditor& auditor_;
  ProbeAnswers* of_whole_;
  ProbeAnswers answers_;
  std::vector<std::int32_t> other_view_;  // by answer: the same in the other view
  struct Last {
    Digest view;
    std::int64_t answer = 0;
    bool known = false;
  };
  Last last_[probe_view_count];
  std::uint64_t hits_ = 0;
  std::uint64_t hits_of_whole_ = 0;
};

}  // namespace firedrill
