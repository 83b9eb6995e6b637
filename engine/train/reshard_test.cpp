// A checkpoint saved under one layout is resumed under any other of the job, with another number of ranks, another ZeRO
// stage, other stages: and the run ends as if nothing had happened.
#include <gtest/gtest.h>

#include "engine/ckpt/protocol.h"
#include "engine/model/numerics.h"
#include "engine/train/crew.h"

namespace firedrill {
namespace {

constexpr int middle = 3;

std::string text_to_learn() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + (i * i / 3 + i) % 11);
  return text;
}

// One disk over several attempts, each with a layout of its own.
class Relay {
 public:
  Relay(const Job& job, const Model& model, const Sampler& sampler, Value text)
      : job_(job), model_(model), sampler_(sampler), text_(std::move(text)), machine_(fibers_) {
    machine_.reset({});
  }

  // Resumes from what is there, goes on to step `last`, and publishes.
  HeldRuns run(const Layout& layout, int last) {
    held_.clear();
    ++number_;
    const int world = layout.world_size();
    sim::Attempt& attempt = machine_.start_attempt(
        {.number = number_, .node_of_rank = std::vector<int>(static_cast<std::size_t>(world), 0)});
    identity_ = make_run_identity(job_, layout, "relay", digest_of("text"), "numerics");
    for (int rank = 0; rank < world; ++rank) attempt.start(rank, [&, rank] { live(attempt, layout, rank, last); });
    const Status ended = attempt.run();
    for (int rank = 0; rank < world; ++rank) {
      if (attempt.end_of(rank) != sim::RankEnd::finished) throw std::runtime_error(attempt.thrown_by(rank));
    }
    if (!ended.ok()) throw std::runtime_error(describe(ended.error()));
    return held_;
  }

 private:
  static void must(const Status& status) {
    if (!status.ok()) throw std::runtime_error(describe(status.error()));
  }
  template <class T>
  static T get(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(describe(result.error()));
    return *std::move(result);
  }

  Status meet(sim::Seams& seams, const Layout& layout, int rank) const {
    const Time deadline = seams.clock.now() + job_.cluster.deadline;
    FD_TRY_VOID(seams.store.set(fmt::format("{}/{}", number_, rank), seams.transport.address()));
    std::vector<std::string> addresses;
    for (int peer = 0; peer < layout.world_size(); ++peer) {
      FD_TRY(addresses.emplace_back(), seams.store.get(fmt::format("{}/{}", number_, peer), deadline));
    }
    return seams.transport.connect(addresses, deadline);
  }

  void live(sim::Attempt& attempt, const Layout& layout, int rank, int last) {
    sim::Seams seams = attempt.seams(rank);
    Position position{.attempt = number_, .rank = rank};
    SilentObserver observer;
    DirectCompute compute;
    TransportCollectives collectives(seams.transport, compute, position, observer);
    Parts parts{.files = seams.files,
                .transport = seams.transport,
                .collectives = collectives,
                .store = seams.store,
                .compute = compute,
                .clock = seams.clock,
                .host = seams.host,
                .observer = observer,
                .position = position};
    must(meet(seams, layout, rank));
    const Groups groups = groups_of(job_, layout, rank);
    const Holdings holdings = holdings_of(job_, layout, model_, rank);
    const CheckpointContext ctx{
        .parts = parts, .job = job_, .world = groups.world, .identity = identity_, .attempt = number_};
    Protocol protocol;
    must(protocol.claim_attempt(ctx));
    const FindResult found = get(protocol.find(ctx));
    TrainingState state;
    if (found.chosen) {
      StateView view = blank_view(model_, holdings);
      must(protocol.restore(ctx, found, view));
      state = get(state_from(job_, model_, view, holdings));
    } else {
      state = get(initial_state(compute, job_, model_, sampler_.start(), holdings));
    }
    Trainer trainer(job_, layout, model_, sampler_, text_, parts, std::move(state));
    for (std::int64_t step = trainer.state().counters.step + 1; step <= last; ++step) {
      position.step = step;
      get(trainer.step());
    }
    get(protocol.publish(ctx, last, trainer.view(), digest_of_state(trainer.view())));
    for (const StateGroup& group : trainer.view()) {
      for (const TensorSlot& tensor : group.tensors) {
        held_.try_emplace(name_of(tensor), HeldRun{.tensor = tensor.name,
                                                   .begin = tensor.begin,
                                                   .value = group.value.slice(tensor.offset, tensor.count())});
      }
    }
  }

  const Job& job_;
  const Model& model_;
  const Sampler& sampler_;
  Value text_;
  int number_ = 0;
  RunIdentity identity_;
  HeldRuns held_;
  sim::FiberPool fibers_{{.stack_size = 1 << 20}};
  sim::Machine machine_;
};

class Reshard : public testing::Test {
 protected:
  static void SetUpTestSuite() { pin_numerics(); }

  Reshard() {
    job_.model = {.layers = 4, .width = 12, .heads = 2, .hidden = 20, .sequence = 8, .dropout = 0.1};
    job_.lanes = {.dp = 4, .tp = 2, .cp = 2};
    job_.batch = {.lane_micro_batch = 1, .accumulation = 1};
    job_.optimizer = {.lr = 0.003, .warmup_steps = 2, .decay = Decay::cosine, .weight_decay = 0.1, .clip = 1.0};
    job_.precision.scaler = {.dynamic = true, .initial_scale = 1024, .growth_interval = 2};
    job_.steps = 6;
  }

  Job job_;
  Value text_ = Value::copy_of(text_to_learn());
};

const std::vector<Layout> layouts = {
    {},
    {.dp = 4},
    {.dp = 2, .tp = 2},
    {.tp = 2, .cp = 2, .sequence_parallel = true},
    {.dp = 4, .zero = 1},
    {.dp = 2, .zero = 2},
    {.dp = 4, .cp = 2, .zero = 3},
    {.pp = 4},
    {.dp = 2, .pp = 2, .zero = 3, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2},
    {.dp = 2, .tp = 2, .pp = 2, .cp = 2, .zero = 1, .schedule = PipelineSchedule::gpipe},
};

// Returns how many pairs there were.
int expect_all_pairs(const Job& job, const Value& text, const std::vector<Layout>& list) {
  const Model model(job);
  const Sampler sampler = *Sampler::make(job, text.count());
  const HeldRuns golden = Relay(job, model, sampler, text).run({}, job.steps);
  int pairs = 0;
  for (const Layout& saved : list) {
    for (const Layout& resumed : list) {
      if (saved == resumed) continue;
      Relay relay(job, model, sampler, text);
      relay.run(saved, middle);
      std::map<std::string, std::int64_t> covered;
      for (const auto& [name, run] : relay.run(resumed, job.steps)) {
        const auto whole = golden.find(run.tensor);
        EXPECT_TRUE(whole != golden.end()) << name;
        if (whole == golden.end()) return pairs;
        EXPECT_EQ(run.value.digest(), whole->second.value.slice(run.begin, run.value.count()).digest())
            << name << " saved under " << to_string(saved) << ", resumed under " << to_string(resumed);
        covered[run.tensor] += run.value.count();
      }
      for (const auto& [name, run] : golden) EXPECT_EQ(covered[name], run.value.count()) << name;
      ++pairs;
    }
  }
  return pairs;
}

// While the loss scale comes down and grows again. What both ends of a pipeline hold is saved once; 16-bit parameters
// are rounded anew from the masters.
TEST_F(Reshard, SixteenBitsAndTiedWeightsGoOnFromAnyPipelineAndShard) {
  job_.model.tied_embedding = true;
  job_.precision = {.parameters = Precision::fp16,
                    .scaler = {.dynamic = true, .initial_scale = 0x1p22, .growth_interval = 2}};
  EXPECT_EQ(expect_all_pairs(job_, text_, {layouts[0], layouts[4], layouts[6], layouts[7], layouts[8], layouts[9]}),
            30);
}

TEST_F(Reshard, AnyLayoutGoesOnFromWhatAnyOtherSaved) { EXPECT_EQ(expect_all_pairs(job_, text_, layouts), 90); }

// Experts are found by their number in the layer, whichever rank had them.
TEST_F(Reshard, ExpertsGoOnAtAnyOtherDegree) {
  job_.model.layers = 2;
  job_.model.experts = 8;
  EXPECT_EQ(expect_all_pairs(job_, text_,
                             {{},
                              {.dp = 4, .ep = 4},
                              {.dp = 4, .cp = 2, .ep = 8, .zero = 1},
                              {.dp = 2, .tp = 2, .pp = 2, .cp = 2, .ep = 2, .zero = 3}}),
            12);
}

}  // namespace
}  // namespace firedrill
