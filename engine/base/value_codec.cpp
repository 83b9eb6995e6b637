#include "engine/base/value_codec.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/bytes.h"

namespace firedrill {
namespace {

constexpr std::uint8_t no_value = 0xFF;
constexpr int depth_max = 16;

Error corrupted(const char* what) {
  return Error{.code = Code::corrupted, .message = fmt::format("serialised value: {}", what)};
}

void write_outline(const Value& value, ByteWriter& out, int depth) {
  FD_CHECK(depth < depth_max, "packs are nested deeper than {}", depth_max);
  if (!value) {
    out.number(no_value);
    return;
  }
  out.number(value.dtype());
  if (value.is_pack()) {
    out.number(static_cast<std::uint32_t>(value.parts().size()));
    for (const Value& part : value.parts()) write_outline(part, out, depth + 1);
    return;
  }
  out.number(static_cast<std::uint8_t>(value.shape().rank()));
  for (const std::int64_t size : value.shape().sizes()) out.number(size);
}

void collect_buffers(const Value& value, std::vector<std::span<const std::byte>>& buffers) {
  if (!value) return;
  if (!value.is_pack()) {
    if (value.size() > 0) buffers.push_back(value.bytes());
    return;
  }
  for (const Value& part : value.parts()) collect_buffers(part, buffers);
}

// One node as it stands in the outline, nothing allocated yet.
struct Outline {
  DType dtype = DType::u8;
  bool empty = false;
  std::size_t nodes = 1;
  Shape shape;
};

Result<Shape> read_shape(ByteReader& in, DType dtype, std::uint64_t& bytes_left) {
  const auto rank = in.number<std::uint8_t>();
  if (rank > 4) return corrupted("a shape of more than four dimensions");
  std::array<std::int64_t, 4> sizes{};
  for (std::size_t i = 0; i < rank; ++i) sizes[i] = in.number<std::int64_t>();
  const std::span<const std::int64_t> used(sizes.data(), rank);
  if (std::ranges::any_of(used, [](std::int64_t size) { return size < 0; })) return corrupted("a negative size");
  const bool nothing = std::ranges::any_of(used, [](std::int64_t size) { return size == 0; });
  std::uint64_t bytes = nothing ? 0 : size_of(dtype);
  for (const std::int64_t size : used) {
    if (nothing) break;
    // Dividing keeps the product of garbage sizes from wrapping around.
    if (static_cast<std::uint64_t>(size) > bytes_left / bytes) return corrupted("buffers larger than allowed");
    bytes *= static_cast<std::uint64_t>(size);
  }
  if (bytes > bytes_left) return corrupted("buffers larger than allowed");
  bytes_left -= bytes;
  return Shape(used);
}

Status read_outline(ByteReader& in, std::vector<Outline>& nodes, std::uint64_t& bytes_left, int depth) {
  if (depth >= depth_max) return corrupted("packs nested too deep");
  const auto tag = in.number<std::uint8_t>();
  if (!in.ok()) return corrupted("the outline ends early");
  const std::size_t index = nodes.size();
  nodes.emplace_back();
  if (tag == no_value) {
    nodes[index].empty = true;
    return {};
  }
  if (tag > static_cast<std::uint8_t>(DType::pack)) return corrupted("an unknown element type");
  nodes[index].dtype = static_cast<DType>(tag);
  if (nodes[index].dtype != DType::pack) {
    FD_TRY(nodes[index].shape, read_shape(in, nodes[index].dtype, bytes_left));
    return in.ok() ? Status() : Status(corrupted("the outline ends early"));
  }
  const auto parts = in.number<std::uint32_t>();
  if (parts > in.left()) return corrupted("a pack of more parts than the outline has bytes");
  for (std::uint32_t i = 0; i < parts; ++i) FD_TRY_VOID(read_outline(in, nodes, bytes_left, depth + 1));
  nodes[index].nodes = nodes.size() - index;
  return {};
}

}  // namespace

std::vector<std::byte> outline_of(const Value& value) {
  ByteWriter out;
  write_outline(value, out, 0);
  return std::move(out).take();
}

std::vector<std::span<const std::byte>> buffers_of(const Value& value) {
  std::vector<std::span<const std::byte>> buffers;
  collect_buffers(value, buffers);
  return buffers;
}

std::vector<std::byte> serialise(const Value& value) {
  const std::vector<std::byte> outline = outline_of(value);
  ByteWriter out;
  out.number(static_cast<std::uint64_t>(outline.size())).raw(outline);
  for (const std::span<const std::byte> buffer : buffers_of(value)) out.raw(buffer);
  return std::move(out).take();
}

Result<Value> parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::span<const std::byte> outline = in.raw(in.number<std::uint64_t>());
  if (!in.ok()) return corrupted("it ends inside its outline");
  FD_TRY(ValueBuilder builder, ValueBuilder::from_outline(outline, in.left()));
  if (builder.bytes_total() != in.left()) return corrupted("bytes are left over");
  for (const std::span<std::byte> buffer : builder.buffers()) {
    std::memcpy(buffer.data(), in.raw(buffer.size()).data(), buffer.size());
  }
  return std::move(builder).finish();
}

Result<ValueBuilder> ValueBuilder::from_outline(std::span<const std::byte> outline, std::uint64_t bytes_max) {
  ByteReader in(outline);
  std::vector<Outline> nodes;
  std::uint64_t bytes_left = bytes_max;
  FD_TRY_VOID(read_outline(in, nodes, bytes_left, 0));
  if (!in.at_end()) return corrupted("its outline has bytes left over");
  ValueBuilder builder;
  builder.bytes_total_ = bytes_max - bytes_left;
  builder.nodes_.reserve(nodes.size());
  for (const Outline& node : nodes) {
    const bool buffer = !node.empty && node.dtype != DType::pack;
    builder.nodes_.push_back(Node{.dtype = node.dtype, .empty = node.empty, .size = node.nodes});
    if (buffer) builder.nodes_.back().buffer.emplace(node.dtype, node.shape);
  }
  return builder;
}

std::vector<std::span<std::byte>> ValueBuilder::buffers() {
  std::vector<std::span<std::byte>> buffers;
  for (Node& node : nodes_) {
    if (node.buffer && !node.buffer->bytes().empty()) buffers.push_back(node.buffer->bytes());
  }
  return buffers;
}

Value ValueBuilder::finish() && { return build(0); }

Value ValueBuilder::build(std::size_t index) {
  Node& node = nodes_[index];
  if (node.empty) return Value();
  if (node.buffer) return std::move(*node.buffer).freeze();
  std::vector<Value> parts;
  for (std::size_t part = index + 1; part < index + node.size; part += nodes_[part].size) parts.push_back(build(part));
  return Value::pack(parts);
}

}  // namespace firedrill
