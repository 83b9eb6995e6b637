// Attempts: the claim, what an attempt lists, what it may see of earlier ones, and its own record of that.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ckpt/agree.h"
#include "engine/ckpt/protocol.h"
#include "engine/ckpt/survey.h"

namespace firedrill {
Status Protocol::claim_attempt(const CheckpointContext& ctx) {
  const PhaseScope phase(ctx.parts.position, Phase::rendezvous);
  Value word;
  if (ctx.coordinator()) {
    const Status claimed = catalog_for(ctx.job, ctx.parts.compute).claim(ctx.parts.files, ctx.attempt);
    if (!claimed && ends_the_call(claimed.error())) return claimed.error();
    word = encode_status(ctx.world.me, claimed);
  }
  FD_TRY(const Agreed told, tell_all(ctx, "checkpoint.claim", word));
  if (told.failure) return *told.failure;
  return {};
}

Catalog& Protocol::catalog_for(const Job& job, Compute& compute) {
  if (!catalog_ || catalog_kind_ != job.checkpoint.catalog) catalog_ = make_catalog(job.checkpoint.catalog);
  catalog_kind_ = job.checkpoint.catalog;
  compute_ = &compute;
  return *catalog_;
}

Result<Survey> Protocol::survey(FileSystem& files) {
  FD_CHECK(catalog_, "a survey before anybody said of which catalog");
  return catalog_->survey(files, *compute_);
}

std::vector<CheckpointId> Protocol::candidates(const Survey& survey) const {
  const auto in = [](const std::vector<CheckpointId>& ids, const CheckpointId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  std::vector<CheckpointId> result;
  for (const CheckpointId& id : survey.manifests) {
    if (!in(survey.rejected, id) && !in(survey.tombstones, id) && is_visible(survey, id)) result.push_back(id);
  }
  return result;
}

Result<Survey> Protocol::take_together(const std::vector<Survey>& surveys, int /*me*/) const {
  return union_of(surveys);
}

Result<Survey> Protocol::agree_on_survey(const CheckpointContext& ctx) {
  catalog_for(ctx.job, ctx.parts.compute);
  const auto mine = survey(ctx.parts.files);
  if (!mine && ends_the_call(mine.error())) return mine.error();
  const int me = ctx.world.me;
  FD_TRY(const Agreed all,
         agree(ctx, "checkpoint.survey", mine ? encode_survey(me, *mine) : encode_error(me, mine.error())));
  if (all.failure) return *all.failure;
  std::vector<Survey> surveys;
  surveys.reserve(all.all.parts().size());
  for (const Value& part : all.all.parts()) {
    FD_TRY(Survey survey, decode_survey(part));
    surveys.push_back(std::move(survey));
  }
  FD_TRY(Survey together, take_together(surveys, ctx.world.me));
  if (!together.claims.empty() && together.claims.back() > ctx.attempt) {
    return Error{
        .code = Code::fenced,
        .message = fmt::format("attempt {} has begun: attempt {} is over", together.claims.back(), ctx.attempt)};
  }
  return together;
}

Status Protocol::record_seen(const CheckpointContext& ctx, const std::vector<CheckpointId>& accepted) {
  return catalog_for(ctx.job, ctx.parts.compute)
      .record_seen(ctx.parts.files, {.attempt = ctx.attempt, .accepted = accepted});
}

}  // namespace firedrill
