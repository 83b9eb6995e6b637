// Exchanges: how ranks learn of each other's success before anyone goes on. What a rank gives begins with a word that
// says whose it is and whether all is well; else an error follows, which then is everybody's. A rank whose exchange did
// not come about may be left with its own word in the place of another's: that is no agreement.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/ckpt/context.h"

namespace firedrill {

// The rank is no longer part of the attempt, or the attempt is over: nothing is shared any more.
bool ends_the_call(const Error& error);
// A file that is there, or should be, does not give what was written. Damage only if another rank says so too.
bool is_damage(const Error& error);

constexpr std::uint64_t word_of(int rank, bool well) {
  return (static_cast<std::uint64_t>(rank) + 1) << 1 | static_cast<std::uint64_t>(well ? 0 : 1);
}
Value encode_ok(int rank);
Value encode_error(int rank, const Error& error);
Value encode_status(int rank, const Status& status);
// The error in what `rank` of `ranks` gave, if it is one; its message names the rank. Code::mismatch if another of them
// gave it.
std::optional<Error> error_in(const Value& given, int rank, int ranks);

struct Agreed {
  Value all;                     // a pack with what each rank gave
  std::optional<Error> failure;  // of the lowest rank that has one
};

// Everybody gives, everybody gets all. The Result fails when the exchange itself did.
Result<Agreed> agree(const CheckpointContext& ctx, std::string_view purpose, const Value& mine);

// The coordinator's word to all. `failure` is its error, if it gave one; `all` is what it gave.
Result<Agreed> tell_all(const CheckpointContext& ctx, std::string_view purpose, const Value& of_coordinator);

// A rank that reads what `owner` wrote: on another node if there is one, else another rank if there is one. With equal
// nodes every rank reads for exactly one other.
int reader_of(const Job& job, int world, int owner);

}  // namespace firedrill
