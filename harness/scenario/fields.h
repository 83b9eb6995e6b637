// The fields of every record in our files: each key stands here once, and both reading and writing go by this list. To
// add a field to a job, add it to engine/job/job.h and here.
#pragma once

#include <chrono>
#include <filesystem>

#include "engine/base/units.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/weights.h"

namespace firedrill {

// Fields whose text is not simply their value. Each borrows what it stands for.
struct Keyword {  // one that this build can do, and what it cannot do yet
  std::string_view word;
  std::vector<std::string> not_yet = {};
};
struct PathText {
  std::string& path;
  std::filesystem::path relative_to = {};  // when written; empty: as it is
};
struct DurationText {
  std::chrono::nanoseconds& value;
};
struct BandwidthText {
  double& value;
};
struct VocabularyText {  // `bytes`, or a number
  int& size;
};
struct ScalerText {  // off | dynamic | a mapping
  ScalerSpec& scaler;
};
struct OnErrorText {  // stop | continue N
  CheckpointSpec& checkpoint;
};
struct AttemptText {  // a number | any
  std::optional<int>& attempt;
};
struct OperationText {  // an operation of the disk or of another seam
  std::optional<SeamOp>& op;
  std::optional<FileOp>& file_op;
};
struct FaultOptions {  // what stands behind the kind
  FaultSpec& fault;
};

void read_value(Reader& reader, const Node& node, const std::string& path, Keyword keyword);
void read_value(Reader& reader, const Node& node, const std::string& path, PathText text);
void read_value(Reader& reader, const Node& node, const std::string& path, DurationText duration);
void read_value(Reader& reader, const Node& node, const std::string& path, BandwidthText bandwidth);
void read_value(Reader& reader, const Node& node, const std::string& path, VocabularyText vocabulary);
void read_value(Reader& reader, const Node& node, const std::string& path, ScalerText text);
void read_value(Reader& reader, const Node& node, const std::string& path, OnErrorText text);
void read_value(Reader& reader, const Node& node, const std::string& path, AttemptText text);
void read_value(Reader& reader, const Node& node, const std::string& path, OperationText text);
void read_value(Reader& reader, const Node& node, const std::string& path, FaultSpec& fault);
void read_value(Reader& reader, const Node& node, const std::string& path, Expectation& expect);

Json write_value(const Keyword& keyword);
Json write_value(const PathText& text);
Json write_value(const DurationText& duration);
Json write_value(const BandwidthText& bandwidth);
Json write_value(const VocabularyText& vocabulary);
Json write_value(const ScalerText& text);
Json write_value(const OnErrorText& text);
Json write_value(const AttemptText& text);
Json write_value(const OperationText& text);
Json write_value(const FaultSpec& fault);
Json write_value(const Expectation& expect);

Names<LastBatch> names_of(LastBatch);
Names<Decay> names_of(Decay);
Names<Precision> names_of(Precision);
Names<PublishMode> names_of(PublishMode);
Names<CatalogKind> names_of(CatalogKind);
Names<PipelineSchedule> names_of(PipelineSchedule);
Names<Recompute> names_of(Recompute);
Names<Numerics> names_of(Numerics);
Names<Device> names_of(Device);
Names<Reduction> names_of(Reduction);
Names<Guard> names_of(Guard);
Names<WorldKind> names_of(WorldKind);
Names<RecoveryPolicy> names_of(RecoveryPolicy);
Names<CrashProfile> names_of(CrashProfile);
Names<Phase> names_of(Phase);
Names<When> names_of(When);
Names<Part> names_of(Part);
Names<Landing> names_of(Landing);
Names<Target> names_of(Target);
Names<PayloadDamage> names_of(PayloadDamage);

template <class V>
void visit(V& v, ModelSpec& model) {
  v.required("layers", model.layers);
  v.required("width", model.width);
  v.required("heads", model.heads);
  v.field("hidden", model.hidden, model.hidden == 0);
  v.field("vocabulary", VocabularyText{model.vocabulary});
  v.required("sequence", model.sequence);
  v.field("dropout", model.dropout);
  v.field("kv_heads", model.kv_heads, model.kv_heads == 0);
  v.field("tied_embedding", model.tied_embedding, !model.tied_embedding);
  v.field("experts", model.experts, model.experts == 0);
  v.field("top_k", model.top_k, model.experts == 0);
  v.field("capacity_factor", model.capacity_factor, model.experts == 0);
  v.field("balance_loss", model.balance_loss, model.experts == 0);
}

template <class V>
void visit(V& v, Lanes& lanes) {
  v.required("dp", lanes.dp);
  v.field("tp", lanes.tp);
  v.field("cp", lanes.cp);
}

template <class V>
void visit(V& v, BatchSpec& batch) {
  v.field("lane_micro_batch", batch.lane_micro_batch);
  v.field("accumulation", batch.accumulation);
}

template <class V>
void visit(V& v, OptimizerSpec& optimizer) {
  v.field("kind", Keyword{"adamw"});
  v.field("lr", optimizer.lr);
  v.field("warmup_steps", optimizer.warmup_steps);
  v.field("decay", optimizer.decay);
  v.field("lr_min_ratio", optimizer.lr_min_ratio);
  v.field("weight_decay", optimizer.weight_decay);
  v.field("beta1", optimizer.beta1);
  v.field("beta2", optimizer.beta2);
  v.field("epsilon", optimizer.epsilon);
  v.field("clip", optimizer.clip);
}

template <class V>
void visit(V& v, ScalerSpec& scaler) {
  v.field("dynamic", scaler.dynamic);
  v.field("initial_scale", scaler.initial_scale);
  v.field("growth", scaler.growth);
  v.field("backoff", scaler.backoff);
  v.field("growth_interval", scaler.growth_interval);
}

template <class V>
void visit(V& v, PrecisionSpec& precision) {
  v.field("parameters", precision.parameters);
  v.field("scaler", ScalerText{precision.scaler});
}

template <class V>
void visit(V& v, CheckpointSpec& checkpoint) {
  v.field("every", checkpoint.every);
  v.field("keep_validated", checkpoint.keep_validated);
  v.field("mode", checkpoint.mode);
  v.field("catalog", checkpoint.catalog);
  v.field("on_error", OnErrorText{checkpoint});
}

template <class V>
void visit(V& v, SegmentTime& time) {
  v.field("forward", DurationText{time.forward}, time.forward.count() < 0);
  v.field("backward", DurationText{time.backward}, time.backward.count() < 0);
}

template <class V>
void visit(V& v, Cluster& cluster) {
  v.field("ranks_per_node", cluster.ranks_per_node);
  v.field("latency_in_node", DurationText{cluster.latency_in_node});
  v.field("latency_between_nodes", DurationText{cluster.latency_between_nodes});
  v.field("bandwidth_in_node", BandwidthText{cluster.bandwidth_in_node});
  v.field("bandwidth_between_nodes", BandwidthText{cluster.bandwidth_between_nodes});
  v.field("file_operation", DurationText{cluster.file_operation});
  v.field("file_sync", DurationText{cluster.file_sync});
  v.field("file_bandwidth", BandwidthText{cluster.file_bandwidth});
  v.field("forward", DurationText{cluster.forward});
  v.field("backward", DurationText{cluster.backward});
  v.field("embed", cluster.embed, cluster.embed == SegmentTime());
  v.field("attention", cluster.attention, cluster.attention == SegmentTime());
  v.field("mlp", cluster.mlp, cluster.mlp == SegmentTime());
  v.field("head", cluster.head, cluster.head == SegmentTime());
  v.field("expert", cluster.expert, cluster.expert == SegmentTime());
  v.field("message", DurationText{cluster.message}, cluster.message == Cluster().message);
  v.field("optimizer", DurationText{cluster.optimizer});
  v.field("reduce", DurationText{cluster.reduce});
  v.field("codec", DurationText{cluster.codec});
  v.field("failure_detection", DurationText{cluster.failure_detection});
  v.field("deadline", DurationText{cluster.deadline});
  v.field("heartbeat", DurationText{cluster.heartbeat});
  v.field("grace", DurationText{cluster.grace});
}

// The data of a job and the directory that its path is written relative to.
struct DataText {
  DataSpec& data;
  std::filesystem::path relative_to = {};
};
template <class V>
void visit(V& v, DataText& text) {
  v.field("corpus", PathText{text.data.corpus, text.relative_to});
  v.field("shuffle", text.data.shuffle);
  v.field("last_batch", text.data.last_batch);
  v.field("held_out", text.data.held_out);
}

struct JobText {
  Job& job;
  std::filesystem::path relative_to = {};
};
template <class V>
void visit(V& v, JobText& text) {
  Job& job = text.job;
  v.required("schema", Keyword{"firedrill.job/1"});
  v.required("model", job.model);
  v.required("lanes", job.lanes);
  v.field("data", DataText{job.data, text.relative_to});
  v.field("batch", job.batch);
  v.field("optimizer", job.optimizer);
  v.field("precision", job.precision);
  v.field("numerics", job.numerics);
  v.field("device", job.device, job.device == Device::cpu);
  v.field("collectives", job.collectives, job.collectives == Reduction::tree);
  v.required("steps", job.steps);
  v.field("checkpoint", job.checkpoint);
  v.field("cluster", job.cluster);
  v.field("seed", job.seed);
}

template <class V>
void visit(V& v, Layout& layout) {
  v.field("dp", layout.dp);
  v.field("tp", layout.tp, layout.tp == 1);
  v.field("pp", layout.pp, layout.pp == 1);
  v.field("cp", layout.cp, layout.cp == 1);
  v.field("ep", layout.ep, layout.ep == 1);
  v.field("zero", layout.zero, layout.zero == 0);
  v.field("sequence_parallel", layout.sequence_parallel, !layout.sequence_parallel);
  v.field("schedule", layout.schedule, layout.schedule == PipelineSchedule::one_f_one_b);
  v.field("virtual_stages", layout.virtual_stages, layout.virtual_stages == 1);
  v.field("recompute", layout.recompute, layout.recompute == Recompute::segment);
  v.field("prefetch", layout.prefetch, !layout.prefetch);
  v.field("bucket", layout.bucket_bytes, layout.bucket_bytes == 0);
  v.field("guard", layout.guard, layout.guard == Guard::off);
  v.field("replica_check", layout.replica_check, layout.replica_check == 0);
  v.field("rerun", layout.rerun, !layout.rerun);
}

template <class V>
void visit(V& v, Where& at) {
  v.field("attempt", AttemptText{at.attempt}, at.attempt == 1);
  v.required("rank", at.rank);
  v.field("step", at.step);
  v.field("phase", at.phase);
  v.field("op", OperationText{at.op, at.file_op});
  v.field("path", at.path, at.path.empty());
  v.field("nth", at.nth);
  v.field("when", at.when);
}

template <class V>
void visit(V& v, FaultOptions& options) {
  FaultSpec& fault = options.fault;
  switch (fault.kind) {
    case FaultKind::kill_node:
      v.field("lose_unsynced_data", fault.lose_unsynced_data);
      v.field("lose_unsynced_names", fault.lose_unsynced_names);
      return;
    case FaultKind::torn_write: v.field("lost", fault.lost); return;
    case FaultKind::misdirected_write: v.field("lands_in", fault.lands_in); return;
    case FaultKind::bit_flip:
    case FaultKind::nan: v.required("target", fault.target); return;
    case FaultKind::corrupt_payload: v.field("damage", fault.damage); return;
    case FaultKind::slow:
    case FaultKind::slow_shard:
    case FaultKind::slow_disk: v.required("delay", DurationText{fault.delay}); return;
    case FaultKind::late_visibility:
      v.field("delay", DurationText{fault.delay}, fault.delay == Duration{0});
      v.field("looks", fault.looks, fault.looks == 0);
      return;
    case FaultKind::exit: v.field("code", fault.code); return;
    case FaultKind::clock_skew:
      v.field("ahead", DurationText{fault.ahead}, fault.ahead == Duration{0});
      v.field("behind", DurationText{fault.behind}, fault.behind == Duration{0});
      return;
    case FaultKind::delay_message:
      v.required("delay", DurationText{fault.delay});
      v.field("peer", fault.peer);
      return;
    case FaultKind::drop_message:
    case FaultKind::duplicate_message:
    case FaultKind::late_message: v.field("peer", fault.peer); return;
    case FaultKind::partition:
      v.field("one_way", fault.one_way, !fault.one_way);
      v.field("lasts", DurationText{fault.lasts}, fault.lasts == Duration{0});
      return;
    case FaultKind::slow_link:
    case FaultKind::flaky_link:
      v.required("delay", DurationText{fault.delay});
      v.field("peer", fault.peer);
      v.field("group", fault.group, fault.group.empty());
      if (fault.kind == FaultKind::flaky_link) v.field("every", fault.every);
      v.field("lasts", DurationText{fault.lasts}, fault.lasts == Duration{0});
      return;
    default: return;
  }
}

template <class V>
void visit(V& v, BackoffSpec& backoff) {
  v.field("initial", DurationText{backoff.initial});
  v.field("factor", backoff.factor);
  v.field("max", DurationText{backoff.max});
}

template <class V>
void visit(V& v, RecoverySpec& recovery) {
  v.field("policy", recovery.policy);
  v.field("budget", recovery.budget);
  v.field("layout", recovery.layout);
  v.field("spares", recovery.spares, recovery.spares == 0);
  v.field("backoff", recovery.backoff, recovery.backoff == BackoffSpec{});
}

// Where the trouble may begin: {attempt: 1, step: 4}.
struct CrashFrom {
  CrashSpec& crash;
};
template <class V>
void visit(V& v, CrashFrom& from) {
  v.field("attempt", from.crash.attempt);
  v.field("step", from.crash.step);
}

template <class V>
void visit(V& v, CrashSpec& crash) {
  v.field("from", CrashFrom{crash});
  v.field("settled", crash.settled);
  v.field("profile", crash.profile);
  v.field("node_caches", crash.node_caches);
  v.field("torn", crash.torn);
  v.field("kill_everywhere", crash.kill_everywhere);
  v.field("twice", crash.twice);
}

// explore: {weights: {kill: 5, bit_flip: 0}}
struct WeightsText {
  std::vector<KindWeight>& weights;
};
template <class V>
void visit(V& v, WeightsText& text) {
  std::vector<KindWeight> read;
  for (const FaultKindInfo& info : fault_kinds()) {
    std::optional<std::uint32_t> weight;
    for (const KindWeight& each : text.weights) {
      if (each.kind == info.kind) weight = each.weight;
    }
    v.field(info.name, weight, !weight);
    if (weight) read.push_back({info.kind, *weight});
  }
  text.weights = std::move(read);
}

struct ExploreText {
  std::vector<KindWeight>& weights;
};
template <class V>
void visit(V& v, ExploreText& text) {
  v.field("weights", WeightsText{text.weights});
}

}  // namespace firedrill
