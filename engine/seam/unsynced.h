// What a node had issued and not yet synced when it died, item by item. The disk lists the items in the order of issue;
// a chooser (faults/ has them, one per rule of a persistence profile) says which of them are lost. What is not lost
// had reached the storage and is durable from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace firedrill {

enum class UnsyncedKind : std::uint8_t {
  data,  // one write to a file
  name,  // one change of one directory entry: made, replaced or removed
};

struct UnsyncedItem {
  UnsyncedKind kind = UnsyncedKind::data;
  int node = 0;
  std::string_view path;        // of the file as it is named now, or of the entry
  std::uint64_t operation = 0;  // of its issue; the two entries of a rename share one
  std::int64_t offset = 0;      // data: the range written
  std::int64_t size = 0;
  bool removal = false;  // name: the entry was removed (or moved away)
};

// True: this item is lost. Asked once per item, in the order of issue.
using UnsyncedChooser = std::function<bool(const UnsyncedItem&)>;

}  // namespace firedrill
