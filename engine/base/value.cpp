#include "engine/base/value.h"

#include <algorithm>
#include <memory>
#include <new>

namespace firedrill {
namespace {

constexpr std::size_t alignment = 64;

// Of what this thread makes now.
thread_local bool confined = false;

std::uint64_t type_word(DType dtype, const Shape& shape) {
  std::uint64_t word = static_cast<std::uint64_t>(dtype) << 3 | shape.rank();
  for (const std::int64_t size : shape.sizes()) word = word * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(size);
  return word;
}

detail::ValueRep* allocate(DType dtype, const Shape& shape, std::size_t data_size) {
  // Only the data is aligned: asking the heap for aligned memory costs more than the few bytes more.
  void* memory = ::operator new(sizeof(detail::ValueRep) + alignment + data_size);
  auto* rep = new (memory) detail::ValueRep;
  const auto behind = reinterpret_cast<std::uintptr_t>(rep + 1);
  const std::uintptr_t padding = (alignment - behind % alignment) % alignment;
  rep->dtype = dtype;
  rep->confined = confined;
  rep->type_word = type_word(dtype, shape);
  rep->shape = shape;
  rep->size = data_size;
  rep->data = reinterpret_cast<std::byte*>(rep + 1) + padding;
  return rep;
}

}  // namespace

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::u8: return "u8";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::pack: return "pack";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) : rank_(static_cast<std::uint8_t>(sizes.size())) {
  FD_CHECK(sizes.size() <= sizes_.size(), "a shape has at most {} dimensions, not {}", sizes_.size(), sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

void detail::destroy(ValueRep* rep) {
  if (rep->dtype == DType::pack) {
    auto* parts = reinterpret_cast<Value*>(const_cast<std::byte*>(rep->data));
    std::destroy_n(parts, rep->size);
  }
  ValueRep* parent = rep->parent;
  delete rep->on_device;
  rep->~ValueRep();
  ::operator delete(static_cast<void*>(rep));
  if (parent && release(parent)) destroy(parent);
}

Value Value::copy_of(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  MutableValue copy(dtype, shape);
  FD_CHECK(copy.bytes().size() == bytes.size(), "{} bytes given for a value of {}", bytes.size(), copy.bytes().size());
  if (!bytes.empty()) std::memcpy(copy.bytes().data(), bytes.data(), bytes.size());
  return std::move(copy).freeze();
}

Value Value::copy_of(std::string_view text) {
  return copy_of(DType::u8, Shape{static_cast<std::int64_t>(text.size())}, std::as_bytes(std::span(text)));
}

Value Value::copy_of(std::span<const std::int64_t> words) {
  return copy_of(DType::i64, Shape{static_cast<std::int64_t>(words.size())}, std::as_bytes(words));
}

Value Value::copy_of(std::span<const float> numbers) {
  return copy_of(DType::f32, Shape{static_cast<std::int64_t>(numbers.size())}, std::as_bytes(numbers));
}

Value Value::on_device(DType dtype, const Shape& shape, std::unique_ptr<DeviceBuffer> buffer) {
  FD_CHECK(buffer, "a Value of no device");
  auto on_device = std::make_unique<detail::OnDevice>();
  on_device->buffer = std::move(buffer);
  Value value(allocate(dtype, shape, static_cast<std::size_t>(shape.count()) * size_of(dtype)));
  value.rep_->on_device = on_device.release();
  return value;
}

void Value::fetch_from_device() const {
  detail::OnDevice& there = *rep_->on_device;
  int state = detail::OnDevice::not_here;
  if (there.state.compare_exchange_strong(state, detail::OnDevice::on_the_way)) {
    there.buffer->fetch({const_cast<std::byte*>(rep_->data), rep_->size});
    there.state.store(detail::OnDevice::here);
    there.state.notify_all();
    return;
  }
  while (state != detail::OnDevice::here) {
    there.state.wait(state);
    state = there.state.load();
  }
}

Value Value::pack(std::span<const Value> parts) {
  detail::ValueRep* rep = allocate(DType::pack, Shape{static_cast<std::int64_t>(parts.size())}, parts.size_bytes());
  rep->size = parts.size();
  for (const Value& part : parts) rep->bytes_of_parts += part.bytes_total();
  std::uninitialized_copy(parts.begin(), parts.end(), reinterpret_cast<Value*>(const_cast<std::byte*>(rep->data)));
  return Value(rep);
}

Digest Value::digest_recomputed() const {
  if (!is_pack()) return digest_of(bytes());
  DigestBuilder builder;
  for (const Value& part : parts()) {
    if (!part) {
      builder.add(std::uint64_t{0});
      continue;
    }
    builder.add(part.rep_->type_word).add(part.digest_recomputed());
  }
  return builder.finish();
}

Digest Value::compute_digest() const {
  Digest digest;
  if (is_pack()) {
    DigestBuilder builder;
    for (const Value& part : parts()) {
      if (!part) {
        builder.add(std::uint64_t{0});
        continue;
      }
      builder.add(part.rep_->type_word).add(part.digest());
    }
    digest = builder.finish();
  } else {
    digest = digest_of(bytes());
  }
  rep_->digest = digest;
  rep_->digest_known.store(true, std::memory_order_release);
  return digest;
}

bool Value::same_as(const Value& other) const {
  if (rep_ == other.rep_) return true;
  if (!rep_ || !other.rep_ || dtype() != other.dtype() || shape() != other.shape()) return false;
  if (is_pack()) {
    return std::equal(parts().begin(), parts().end(), other.parts().begin(), other.parts().end(),
                      [](const Value& a, const Value& b) { return a.same_as(b); });
  }
  return size() == other.size() && (size() == 0 || std::memcmp(bytes().data(), other.bytes().data(), size()) == 0);
}

Value Value::slice(std::int64_t offset, std::int64_t count) const {
  FD_CHECK(offset >= 0 && count >= 0 && offset + count <= this->count(), "slice [{}, {}) of {} elements", offset,
           offset + count, this->count());
  const std::size_t width = size_of(dtype());
  detail::ValueRep* rep = allocate(dtype(), Shape{count}, 0);
  rep->data = bytes().data() + static_cast<std::size_t>(offset) * width;
  rep->size = static_cast<std::size_t>(count) * width;
  rep->parent = rep_->parent ? rep_->parent : rep_;
  detail::retain(rep->parent);
  return Value(rep);
}

Value Value::reinterpret(DType dtype, const Shape& shape) const {
  FD_CHECK(static_cast<std::size_t>(shape.count()) * size_of(dtype) == size(),
           "{} elements of {} need other than {} bytes", shape.count(), to_string(dtype), size());
  if (dtype == this->dtype() && shape == this->shape()) return *this;
  detail::ValueRep* rep = allocate(dtype, shape, 0);
  rep->data = bytes().data();
  rep->size = size();
  rep->parent = rep_->parent ? rep_->parent : rep_;
  detail::retain(rep->parent);
  if (digest_known()) {
    rep->digest = digest();
    rep->digest_known.store(true, std::memory_order_release);
  }
  return Value(rep);
}

bool Value::unique() const { return rep_ && !rep_->parent && rep_->references.load(std::memory_order_acquire) == 1; }

ConfinedValues::ConfinedValues() : before_(std::exchange(confined, true)) {}
ConfinedValues::~ConfinedValues() { confined = before_; }

MutableValue::MutableValue(DType dtype, const Shape& shape)
    : value_(allocate(dtype, shape, static_cast<std::size_t>(shape.count()) * size_of(dtype))) {}

MutableValue::MutableValue(Value value) {
  FD_CHECK(value && !value.is_pack(), "only a buffer can be updated in place");
  if (value.unique() && !value.device_buffer()) {
    value.rep_->digest_known.store(false, std::memory_order_release);
    value_ = std::move(value);
  } else {
    value_ = Value::copy_of(value.dtype(), value.shape(), value.bytes());
  }
}

}  // namespace firedrill
