// Trace files: JSON lines. The first is {"schema": "firedrill.trace/1", "owner": KEY}, the key of the run that it was
// recorded of, if there is one; then one line per thing:
//   {"base": PATH, "kind": "file" | "directory", "inode": N, "bytes": DIGEST}
//   {"program": N, "attempt": N, "rank": N, "node": N, "task": N}
//   {"bytes": DIGEST, "hex": TEXT}            before their first use; each once
//   {"operation": N, "kind": ..., "program": N, "op": ..., "path": ..., "after": [N, ...], ...}
// Operations are numbered from 0 in the order in which they took effect. Fields that say nothing are left out.
//
// Errors of reading: corrupted (names the line), mismatch (another schema). Bytes must have the digest they claim.
#pragma once

#include <iosfwd>

#include "faults/persistence/trace.h"

namespace firedrill::crash {

void write_trace(std::ostream& out, const Trace& trace);
Result<Trace> read_trace(std::istream& in);

}  // namespace firedrill::crash
