// Job: what is trained. Everything here may change bits, but for `cluster`, `checkpoint` and the name. A job is read
// from one YAML file (harness/scenario) and is then a plain value.
//
// Global batch = lane_micro_batch x accumulation x dp lanes, however lanes lie on ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/result.h"

namespace firedrill {

struct ModelSpec {
  int layers = 1;
  int width = 16;  // model dimension; a multiple of heads
  int heads = 2;
  int hidden = 0;               // MLP dimension; 0: 8/3 of the width, rounded up to a multiple of 8
  int sequence = 16;            // tokens per sample
  int vocabulary = 256;         // bytes
  double dropout = 0.0;         // in [0, 1)
  int kv_heads = 0;             // heads of keys and values; 0: as many as heads
  bool tied_embedding = false;  // the head projects with the token weights
  // Mixture of experts: the MLP of each layer is `experts` of them, of which each token takes `top_k`. 0: one MLP.
  int experts = 0;
  int top_k = 2;
  double capacity_factor = 1.25;  // rows of an expert for one lane: factor * top_k * tokens / experts, rounded up
  double balance_loss = 0.01;     // weight of the router's load-balancing loss, which the reported loss leaves out

  int hidden_size() const { return hidden > 0 ? hidden : (8 * width / 3 + 7) / 8 * 8; }
  bool operator==(const ModelSpec&) const = default;
};

struct Lanes {
  int dp = 1;
  int tp = 1;
  int cp = 1;
  bool operator==(const Lanes&) const = default;
};

// What becomes of the samples that do not fill the last global batch of an epoch.
enum class LastBatch : std::uint8_t {
  drop,  // they are left out
  pad,   // the batch is filled with the first samples of the same epoch's order
  keep,  // the batch is smaller: empty rows count for nothing
};

struct DataSpec {
  std::string corpus = "/usr/share/common-licenses/GPL-3";  // a file, or a directory read in name order
  bool shuffle = true;
  LastBatch last_batch = LastBatch::keep;
  double held_out = 0.0;  // share of the corpus' end kept for evaluation, in [0, 0.5]
  bool operator==(const DataSpec&) const = default;
};

struct BatchSpec {
  int lane_micro_batch = 2;
  int accumulation = 1;
  bool operator==(const BatchSpec&) const = default;
};

enum class Decay : std::uint8_t { constant, cosine };

struct OptimizerSpec {
  double lr = 0.003;
  int warmup_steps = 0;
  Decay decay = Decay::constant;
  double lr_min_ratio = 0.1;  // cosine ends at lr * this
  double weight_decay = 0.0;  // decoupled; on matrices only, not on norms and biases
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip = 0.0;  // global gradient norm; 0 is off
  bool operator==(const OptimizerSpec&) const = default;
};

// Of parameters, activations and gradients that cross segments. With 16 bits masters and moments are fp32.
enum class Precision : std::uint8_t { fp32, bf16, fp16 };

std::string_view to_string(Precision precision);

struct ScalerSpec {
  bool dynamic = false;
  double initial_scale = 65536.0;  // powers of two keep scaling exact
  double growth = 2.0;
  double backoff = 0.5;
  int growth_interval = 2000;  // steps without overflow before the scale grows
  bool operator==(const ScalerSpec&) const = default;
};

struct PrecisionSpec {
  Precision parameters = Precision::fp32;
  ScalerSpec scaler;
  bool operator==(const PrecisionSpec&) const = default;
};

enum class OnError : std::uint8_t { stop, continue_training };

enum class PublishMode : std::uint8_t {
  sync,   // training waits for the publish
  async,  // a snapshot is taken and training goes on; at most one publish is in flight
};

// Where commits, validations and rejections are recorded.
enum class CatalogKind : std::uint8_t { files, rocksdb };

struct CheckpointSpec {
  int every = 0;  // steps; 0 only at the end
  int keep_validated = 2;
  PublishMode mode = PublishMode::sync;
  CatalogKind catalog = CatalogKind::files;
  OnError on_error = OnError::stop;
  int failures_max = 0;  // with continue: failed publishes in a row that are survived
  bool operator==(const CheckpointSpec&) const = default;
};

// Of one segment; below zero: as Cluster::forward and ::backward say for all.
struct SegmentTime {
  std::chrono::nanoseconds forward{-1};
  std::chrono::nanoseconds backward{-1};
  bool operator==(const SegmentTime&) const = default;
};

// What things cost in virtual time. Never part of a digest.
struct Cluster {
  int ranks_per_node = 1;
  std::chrono::nanoseconds latency_in_node{2'000};
  std::chrono::nanoseconds latency_between_nodes{10'000};
  double bandwidth_in_node = 100e9;  // bytes per second
  double bandwidth_between_nodes = 25e9;
  std::chrono::nanoseconds file_operation{50'000};
  std::chrono::nanoseconds file_sync{500'000};
  double file_bandwidth = 2e9;
  std::chrono::nanoseconds forward{100'000};  // one segment
  std::chrono::nanoseconds backward{300'000};
  SegmentTime embed;
  SegmentTime attention;
  SegmentTime mlp;
  SegmentTime head;
  SegmentTime expert;
  std::chrono::nanoseconds message{500};  // of the time of its sender, and of its receiver
  std::chrono::nanoseconds optimizer{50'000};
  std::chrono::nanoseconds reduce{5'000};
  std::chrono::nanoseconds codec{20'000};
  std::chrono::nanoseconds failure_detection{1'000'000};  // until peers of a dead rank are told
  std::chrono::nanoseconds deadline{60'000'000'000};      // of any single wait
  std::chrono::nanoseconds heartbeat{500'000'000};        // between two signs of life
  std::chrono::nanoseconds grace{30'000'000'000};         // between SIGTERM and SIGKILL
  bool operator==(const Cluster&) const = default;
};

enum class Numerics : std::uint8_t { pinned, native };

// Where kernels run. Other bits on each, so it is part of the numerics key, not of the job's digest.
enum class Device : std::uint8_t { cpu, cuda };

// Who adds what comes from other ranks.
enum class Reduction : std::uint8_t {
  tree,    // the fixed tree over lanes
  native,  // NCCL: the same bits on every run of one layout only
};

struct Job {
  std::string name;  // of the file, without its ending
  ModelSpec model;
  Lanes lanes;
  DataSpec data;
  BatchSpec batch;
  OptimizerSpec optimizer;
  PrecisionSpec precision;
  Numerics numerics = Numerics::pinned;
  Device device = Device::cpu;
  Reduction collectives = Reduction::tree;
  int steps = 1;
  CheckpointSpec checkpoint;
  Cluster cluster;
  std::uint64_t seed = 1;

  std::int64_t global_batch() const {
    return static_cast<std::int64_t>(batch.lane_micro_batch) * batch.accumulation * lanes.dp;
  }
  bool operator==(const Job&) const = default;
};

// One field of a job that may change bits, in canonical text.
struct JobField {
  std::string name;  // "optimizer.lr"
  std::string value;
};

// All fields that may change bits, in one fixed order. `steps` is one of them: it shapes the schedule.
std::vector<JobField> bit_fields(const Job& job);
Digest digest_of_job(const Job& job);

// Every mistake in the job, each naming the value, the place and the remedy.
std::vector<std::string> mistakes_in(const Job& job);

}  // namespace firedrill
