// Corpus: the text that is trained on, as one immutable Value of bytes. It is the user's text on the user's disk, so it
// is read with plain streams and not through the file system under test.
//
// A path names a file, or a directory whose regular files are taken recursively, ordered bytewise by their path below
// the directory and joined without a separator. Names that begin with a dot and symbolic links inside a directory are
// left out: they are no text of the user's, or text that is there already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/base/value.h"

namespace firedrill {

struct Corpus {
  std::string path;  // as given; names the corpus in messages
  int files = 0;
  Value text;     // u8, one dimension
  Digest digest;  // of the text
};

// Errors: not_found (no such file or directory), io_error (unreadable), invalid_input (no text in it).
Result<Corpus> load_corpus(const std::string& path);

// A corpus from memory, for tests and benchmarks.
Corpus corpus_from(std::string_view text);

// The text that is trained on and the end of it that is kept for evaluation.
struct CorpusSplit {
  Value training;
  Value held_out;  // empty (no elements) if nothing is held out
};

// `held_out`: share of the bytes, in [0, 0.5], rounded down. Without a share `training` is the corpus' own Value.
CorpusSplit split_corpus(const Corpus& corpus, double held_out);

}  // namespace firedrill
