// State: what a checkpoint must hold, as a list of groups that the one visitor of training state makes. Saving,
// restoring, comparing and digesting all go through this list, so a field cannot be in one and missing in another.
//
// A group is one flat Value and the named tensors that lie in it. Names are canonical: free of the layout.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/value.h"
#include "engine/seam/observer.h"

namespace firedrill {

struct TensorSlot {
  std::string name;         // "layers.0.attention.qkv.weight", "optimizer.exp_avg.layers.0....", "random.lane.3"
  Shape shape;              // of the whole tensor
  std::int64_t offset = 0;  // in elements of the group's Value; a multiple of `grain` in float groups
  // A flat shard may have a run of the tensor only: elements [begin, begin + length). Below 0: all of it.
  std::int64_t begin = 0;
  std::int64_t length = -1;

  bool whole() const { return length < 0 || length == shape.count(); }
  std::int64_t count() const { return length < 0 ? shape.count() : length; }
};

// The tensors of a group. Copies share them until one is changed: the list of a state goes to the trainer, to snapshots
// and to the checkpoint protocol in each attempt, and names and places never change. Threads may share a list that none
// of them changes. A change ends the references to elements of this list.
class TensorList {
 public:
  TensorList() = default;
  TensorList(std::initializer_list<TensorSlot> tensors) : list_(std::make_shared<std::vector<TensorSlot>>(tensors)) {}

  bool empty() const { return size() == 0; }
  std::size_t size() const { return list_ ? list_->size() : 0; }
  const TensorSlot* begin() const { return list_ ? list_->data() : nullptr; }
  const TensorSlot* end() const { return begin() + size(); }
  const TensorSlot& front() const { return *begin(); }
  const TensorSlot& operator[](std::size_t i) const { return (*list_)[i]; }
  bool shares_with(const TensorList& other) const { return list_ == other.list_; }

  TensorSlot& change(std::size_t i) { return own()[i]; }
  void push_back(TensorSlot tensor) { own().push_back(std::move(tensor)); }
  void pop_back() { own().pop_back(); }

 private:
  std::vector<TensorSlot>& own() {
    if (!list_ || list_.use_count() > 1) list_ = std::make_shared<std::vector<TensorSlot>>(begin(), end());
    return *list_;
  }

  std::shared_ptr<std::vector<TensorSlot>> list_;
};

// Which of a rank's shard files a group goes to.
enum class ShardKind : std::uint8_t { model, optimizer, extra };
inline constexpr int shard_kind_count = 3;

struct StateGroup {
  std::string name;  // "model/layers.0.attention"; unique in the list
  ShardKind shard = ShardKind::model;
  DType dtype = DType::f32;
  std::int64_t count = 0;  // elements of `value`, padding between tensors included (padding is zero)
  bool replicated = true;  // other ranks hold the same; each saves its share. Else: only this rank holds it
  int holder = 0;          // this one's number among the ranks that hold the same
  int holders = 0;         // how many they are; 0: all ranks, by rank
  TensorList tensors;
  Value value;  // one dimension; empty in a list that says what to restore
};

// The same job gives the same order of groups on every rank; ranks differ in the groups that are not replicated.
using StateView = std::vector<StateGroup>;

// The digest of what one rank holds: the hash of the keys of all groups, in order. Ranks that own different lanes have
// different ones. `step_done`, `restored` and `acknowledged` events carry it.
Digest digest_of_state(const StateView& state);

// "w", or of a run of a tensor "w[64:128]".
std::string name_of(const TensorSlot& tensor);

// Tells the observer the digest of each tensor, or of each run of one, under `state_digest`, unless it knows them
// already.
void describe_state(Observer& observer, const StateView& state, const Digest& state_digest);

}  // namespace firedrill
