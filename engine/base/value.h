// Value: what crosses a segment, an exchange or the disk. An immutable shared buffer with element type, shape and a
// digest that is computed once, when first asked for. One intrusive pointer to one allocation: header, then data.
//
// Values travel by reference: a send, a shard write or a snapshot in the sim world copies nothing. A Pack is a Value
// made of Values; its digest is the hash of theirs, so any composition can be looked up at once.
//
// A Value may lie on a device: then the device's own kernels use it there, and everybody else sees a copy on the host.
//
// Threads: the count is atomic, but for Values made in a ConfinedValues scope; the digest may be computed by two
// threads at once, with the same result. Errors: wrong use (a shape that does not match, data() of a pack) fails a
// check.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/digest.h"

namespace firedrill {

enum class DType : std::uint8_t { u8, i32, i64, f32, bf16, f16, pack };

// Bytes per element; 0 for a pack, and for what is none of them.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {1, 4, 8, 4, 2, 2, 0};
  const auto number = static_cast<std::size_t>(dtype);
  return number < std::size(sizes) ? sizes[number] : 0;
}
std::string_view to_string(DType dtype);

// Up to four dimensions; a scalar has none.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return sizes_[i]; }
  std::span<const std::int64_t> sizes() const { return {sizes_.data(), rank_}; }
  std::int64_t count() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank_; ++i) count *= sizes_[i];
    return count;
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, 4> sizes_{};
  std::uint8_t rank_ = 0;
};

class Value;

// What a Value on a device is there. The device's room derives from it.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  // Waits until the buffer is ready and copies it to the host, all of it. Threads: any.
  virtual void fetch(std::span<std::byte> host) const = 0;
};

namespace detail {

// The host's copy of a Value on a device is made when somebody first looks at its bytes.
struct OnDevice {
  enum State : int { not_here, on_the_way, here };
  std::unique_ptr<DeviceBuffer> buffer;
  std::atomic<int> state = not_here;
};

// What a look-up needs comes first, in one cache line.
struct ValueRep {
  std::atomic<std::uint32_t> references{1};
  DType dtype = DType::u8;
  std::atomic<bool> digest_known{false};
  bool confined = false;  // to one thread
  Digest digest;
  std::uint64_t type_word = 0;      // type and shape as one
  std::size_t size = 0;             // bytes of data; for a pack the number of parts
  const std::byte* data = nullptr;  // behind the header, or inside `parent`
  std::size_t bytes_of_parts = 0;   // of a pack, of all below it
  ValueRep* parent = nullptr;       // a slice keeps its parent alive
  OnDevice* on_device = nullptr;    // of a Value that a device made
  Shape shape;
};

// An atomic instruction costs several times what the rest of a copy does.
inline void retain(ValueRep* rep) {
  if (rep->confined) {
    rep->references.store(rep->references.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  } else {
    rep->references.fetch_add(1, std::memory_order_relaxed);
  }
}
// Whether that was the last one.
inline bool release(ValueRep* rep) {
  if (!rep->confined) return rep->references.fetch_sub(1, std::memory_order_acq_rel) == 1;
  const std::uint32_t left = rep->references.load(std::memory_order_relaxed) - 1;
  rep->references.store(left, std::memory_order_relaxed);
  return left == 0;
}
void destroy(ValueRep* rep);

}  // namespace detail

class Value {
 public:
  Value() = default;
  Value(const Value& other) noexcept : rep_(other.rep_) {
    if (rep_) detail::retain(rep_);
  }
  Value(Value&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Value() {
    if (rep_ && detail::release(rep_)) detail::destroy(rep_);
  }

  // Copies the bytes. shape.count() * size_of(dtype) must equal bytes.size().
  static Value copy_of(DType dtype, const Shape& shape, std::span<const std::byte> bytes);
  static Value copy_of(std::string_view text);                // u8, one dimension
  static Value copy_of(std::span<const std::int64_t> words);  // i64, one dimension
  static Value copy_of(std::span<const float> numbers);       // f32, one dimension
  static Value pack(std::span<const Value> parts);
  static Value pack(std::initializer_list<Value> parts) { return pack(std::span(parts.begin(), parts.size())); }

  // What a device made and holds; its bytes come to the host when they are first asked for.
  static Value on_device(DType dtype, const Shape& shape, std::unique_ptr<DeviceBuffer> buffer);
  // Nothing for a Value of the host.
  const DeviceBuffer* device_buffer() const { return rep_->on_device ? rep_->on_device->buffer.get() : nullptr; }

  explicit operator bool() const { return rep_ != nullptr; }
  DType dtype() const { return rep_->dtype; }
  const Shape& shape() const { return rep_->shape; }
  std::int64_t count() const { return rep_->shape.count(); }
  bool is_pack() const { return rep_->dtype == DType::pack; }

  std::span<const std::byte> bytes() const {
    FD_CHECK(!is_pack(), "a pack has parts, not bytes");
    fetch();
    return {rep_->data, rep_->size};
  }
  std::size_t size() const { return bytes().size(); }  // in bytes
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), size()}; }
  template <class T>
  std::span<const T> as() const {
    FD_CHECK(size_of(dtype()) == sizeof(T), "asked for elements of {} bytes of a value of {}", sizeof(T),
             to_string(dtype()));
    fetch();
    return {reinterpret_cast<const T*>(rep_->data), rep_->size / sizeof(T)};
  }

  std::span<const Value> parts() const {
    FD_CHECK(is_pack(), "only a pack has parts");
    return {reinterpret_cast<const Value*>(rep_->data), rep_->size};
  }
  const Value& operator[](std::size_t i) const {
    FD_CHECK(i < parts().size(), "part {} of a pack of {}", i, parts().size());
    return parts()[i];
  }

  // All bytes in memory, a pack's parts included (a part held twice counts twice).
  std::size_t bytes_total() const {
    if (rep_ == nullptr) return 0;  // an empty part of a pack
    return is_pack() ? rep_->bytes_of_parts : size();
  }

  // XXH3-128 of the bytes alone; of a pack, of the keys of its parts.
  // Debug builds hash again whenever it is asked for, and compare.
  Digest digest() const {
    if (!rep_->digest_known.load(std::memory_order_acquire)) return compute_digest();
#ifndef NDEBUG
    FD_CHECK(rep_->digest == digest_recomputed(), "a {} of {} elements was changed behind its digest",
             to_string(dtype()), rep_->shape.count());
#endif
    return rep_->digest;
  }
  bool digest_known() const { return rep_->digest_known.load(std::memory_order_acquire); }
  // Hashes the bytes now, whatever is known. For checks.
  Digest digest_recomputed() const;
  // Digest and type and shape as one: equal keys mean interchangeable as an input.
  Digest key() const {
    const Digest content = digest();
    return Digest{.high = content.high ^ rep_->type_word * 0xD6E8FEB86659FD93ULL, .low = content.low};
  }
  // Same type, shape and bytes.
  bool same_as(const Value& other) const;

  // `count` elements from `offset`, one dimension, sharing the buffer. Its digest is not known yet.
  Value slice(std::int64_t offset, std::int64_t count) const;
  // The same bytes as u8 in one dimension, or with another type and shape of the same size, sharing the buffer. The
  // digest, which is of the bytes, stays.
  Value as_bytes() const { return reinterpret(DType::u8, Shape{static_cast<std::int64_t>(size())}); }
  Value reinterpret(DType dtype, const Shape& shape) const;

  // Nobody else holds the buffer: an in-place update may consume it (see MutableValue).
  bool unique() const;
  const void* identity() const { return rep_; }

 private:
  friend class MutableValue;
  explicit Value(detail::ValueRep* rep) : rep_(rep) {}
  Digest compute_digest() const;
  void fetch() const {
    if (rep_->on_device) fetch_from_device();
  }
  void fetch_from_device() const;

  detail::ValueRep* rep_ = nullptr;
};

// While it lives, no two threads at once hold what this thread makes: such Values count without atomic instructions,
// for as long as they live. A sim world's trial is a tenth cheaper by it.
class ConfinedValues {
 public:
  ConfinedValues();
  ~ConfinedValues();
  ConfinedValues(const ConfinedValues&) = delete;
  ConfinedValues& operator=(const ConfinedValues&) = delete;

 private:
  bool before_;
};

// A buffer that only its maker can see, until it is frozen into a Value.
class MutableValue {
 public:
  MutableValue(DType dtype, const Shape& shape);  // contents undefined, aligned to 64 bytes
  // Takes over the buffer of a Value that nobody else holds (contents kept), else copies it.
  explicit MutableValue(Value value);

  std::span<std::byte> bytes() { return {const_cast<std::byte*>(value_.rep_->data), value_.rep_->size}; }
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  const Shape& shape() const { return value_.shape(); }
  Value freeze() && { return std::move(value_); }

 private:
  Value value_;
};

}  // namespace firedrill
