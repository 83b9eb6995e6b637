#include "harness/scenario/fields.h"

#include <algorithm>

namespace firedrill {
namespace {

bool is_word(const Node& node, std::string_view word) { return node.kind == Node::Kind::scalar && node.text == word; }

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (int i = 0; i < file_op_count; ++i) names.emplace_back(to_string(static_cast<FileOp>(i)));
  for (int i = 0; i < seam_op_count; ++i) names.emplace_back(to_string(static_cast<SeamOp>(i)));
  return names;
}

}  // namespace

void read_value(Reader& reader, const Node& node, const std::string& path, Keyword keyword) {
  if (is_word(node, keyword.word)) return;
  const bool later = std::find(keyword.not_yet.begin(), keyword.not_yet.end(), node.text) != keyword.not_yet.end();
  if (later) {
    reader.mistake(node.place, path,
                   fmt::format("{} `{}` is not supported yet: use `{}`", path, node.text, keyword.word));
  } else {
    reader.expected(node, path, fmt::format("`{}`", keyword.word));
  }
}

Json write_value(const Keyword& keyword) { return keyword.word; }

void read_value(Reader& reader, const Node& node, const std::string& path, PathText text) {
  std::string given;
  read_value(reader, node, path, given);
  if (given.empty()) return;
  text.path = (node.place.source->directory / given).lexically_normal().string();
}

Json write_value(const PathText& text) {
  const std::filesystem::path path(text.path);
  if (text.relative_to.empty() || path.is_absolute()) return text.path;
  const auto relative = path.lexically_relative(text.relative_to);
  return relative.empty() ? std::filesystem::absolute(path).lexically_normal().string() : relative.string();
}

void read_value(Reader& reader, const Node& node, const std::string& path, DurationText duration) {
  const auto parsed = node.kind == Node::Kind::scalar ? parse_duration(node.text) : std::nullopt;
  if (parsed) {
    duration.value = *parsed;
  } else {
    reader.expected(node, path, "a duration such as 50us, 2ms or 1s");
  }
}

Json write_value(const DurationText& duration) { return format_duration(duration.value); }

void read_value(Reader& reader, const Node& node, const std::string& path, BandwidthText bandwidth) {
  const auto parsed = node.kind == Node::Kind::scalar ? parse_bandwidth(node.text) : std::nullopt;
  if (parsed) {
    bandwidth.value = *parsed;
  } else {
    reader.expected(node, path, "a bandwidth such as 25GB/s");
  }
}

Json write_value(const BandwidthText& bandwidth) { return format_bandwidth(bandwidth.value); }

void read_value(Reader& reader, const Node& node, const std::string& path, VocabularyText vocabulary) {
  if (is_word(node, "bytes")) {
    vocabulary.size = 256;
  } else if (node.kind == Node::Kind::scalar && parse_whole(node.text)) {
    read_value(reader, node, path, vocabulary.size);
  } else {
    reader.expected(node, path, "`bytes`");
  }
}

Json write_value(const VocabularyText& vocabulary) {
  return vocabulary.size == 256 ? Json("bytes") : Json(vocabulary.size);
}

void read_value(Reader& reader, const Node& node, const std::string& path, ScalerText text) {
  if (is_word(node, "off")) {
    text.scaler = ScalerSpec{};
  } else if (is_word(node, "dynamic")) {
    text.scaler = ScalerSpec{.dynamic = true};
  } else if (node.kind == Node::Kind::mapping) {
    text.scaler = ScalerSpec{.dynamic = true};
    read_value(reader, node, path, text.scaler);
  } else {
    reader.expected(node, path, "off, dynamic or a mapping");
  }
}

Json write_value(const ScalerText& text) {
  if (text.scaler == ScalerSpec{}) return "off";
  if (text.scaler == ScalerSpec{.dynamic = true}) return "dynamic";
  return write_value(text.scaler);
}

void read_value(Reader& reader, const Node& node, const std::string& path, OnErrorText text) {
  CheckpointSpec& checkpoint = text.checkpoint;
  if (is_word(node, "stop")) {
    checkpoint.on_error = OnError::stop;
    checkpoint.failures_max = 0;
    return;
  }
  const std::string_view rest = std::string_view(node.text).substr(std::min<std::size_t>(node.text.size(), 9));
  const auto times = parse_whole(rest);
  if (node.kind == Node::Kind::scalar && node.text.starts_with("continue ") && times && *times >= 1 &&
      *times <= 1'000'000) {
    checkpoint.on_error = OnError::continue_training;
    checkpoint.failures_max = static_cast<int>(*times);
  } else {
    reader.expected(node, path, "`stop` or `continue N` (N failed publishes in a row, from 1)");
  }
}

Json write_value(const OnErrorText& text) {
  if (text.checkpoint.on_error == OnError::stop) return "stop";
  return fmt::format("continue {}", text.checkpoint.failures_max);
}

void read_value(Reader& reader, const Node& node, const std::string& path, AttemptText text) {
  if (is_word(node, "any")) {
    text.attempt = std::nullopt;
  } else if (node.kind == Node::Kind::scalar && parse_whole(node.text)) {
    int attempt = 1;
    read_value(reader, node, path, attempt);
    text.attempt = attempt;
  } else {
    reader.expected(node, path, "a number from 1 or `any`");
  }
}

Json write_value(const AttemptText& text) { return text.attempt ? Json(*text.attempt) : Json("any"); }

void read_value(Reader& reader, const Node& node, const std::string& path, OperationText text) {
  for (int i = 0; i < file_op_count; ++i) {
    if (!is_word(node, to_string(static_cast<FileOp>(i)))) continue;
    text.op = SeamOp::file;
    text.file_op = static_cast<FileOp>(i);
    return;
  }
  for (int i = 0; i < seam_op_count; ++i) {
    if (!is_word(node, to_string(static_cast<SeamOp>(i)))) continue;
    text.op = static_cast<SeamOp>(i);
    return;
  }
  const auto names = operation_names();
  const auto near = node.kind == Node::Kind::scalar ? nearest(node.text, names) : std::nullopt;
  reader.expected(
      node, path,
      fmt::format("one of {}{}", join(names, ", "), near ? fmt::format(" (did you mean `{}`?)", *near) : ""));
}

Json write_value(const OperationText& text) {
  if (text.file_op) return to_string(*text.file_op);
  return text.op ? Json(to_string(*text.op)) : Json();
}

void read_value(Reader& reader, const Node& node, const std::string& path, FaultSpec& fault) {
  MappingReader mapping(reader, node, path);
  fault.line = node.place.line;
  std::vector<std::string> kinds;
  std::vector<const Entry*> given;
  for (const FaultKindInfo& info : fault_kinds()) {
    kinds.emplace_back(info.name);
    for (const Entry& entry : node.entries) {
      if (entry.key != info.name) continue;
      given.push_back(&entry);
      fault.kind = info.kind;
    }
    mapping.known(info.name);
  }
  mapping.required("at", fault.at);
  mapping.field("times", fault.times);
  mapping.field("may_not_fire", fault.may_not_fire);
  mapping.finish();
  if (given.size() == 1) {
    FaultOptions options{fault};
    read_value(reader, given[0]->value, fmt::format("{}.{}", path, given[0]->key), options);
  } else if (node.kind == Node::Kind::mapping && !(given.empty() && reader.is_bad(path))) {
    reader.mistake(
        node.place, path,
        fmt::format("{} names {} kinds of fault: give exactly one of {}", path, given.size(), join(kinds, ", ")));
  }
}

Json write_value(const FaultSpec& fault) {
  ObjectWriter writer;
  FaultSpec copy = fault;
  writer.field(to_string(fault.kind), FaultOptions{copy});
  writer.field("at", copy.at);
  writer.field("times", copy.times, copy.times == 1);
  writer.field("may_not_fire", copy.may_not_fire, !copy.may_not_fire);
  return std::move(writer.json());
}

void read_value(Reader& reader, const Node& node, const std::string& path, Expectation& expect) {
  constexpr std::string_view choices = "`pass`, `fail: PROPERTY`, `liveness` or `refuse`";
  if (node.kind == Node::Kind::mapping) {
    MappingReader mapping(reader, node, path);
    mapping.required("fail", expect.property);
    mapping.finish();
    expect.kind = Expectation::Kind::fail;
  } else if (is_word(node, "fail")) {
    reader.mistake(node.place, path, "`fail` needs the property that must fail: write `{fail: PROPERTY}`");
  } else if (is_word(node, "pass")) {
    expect.kind = Expectation::Kind::pass;
  } else if (is_word(node, "liveness")) {
    expect.kind = Expectation::Kind::liveness;
  } else if (is_word(node, "refuse")) {
    expect.kind = Expectation::Kind::refuse;
  } else {
    reader.expected(node, path, choices);
  }
}

Json write_value(const Expectation& expect) {
  if (expect.kind == Expectation::Kind::fail) return Json{{"fail", expect.property}};
  return to_string(expect);
}

Names<LastBatch> names_of(LastBatch) {
  return {{"drop", LastBatch::drop}, {"pad", LastBatch::pad}, {"keep", LastBatch::keep}};
}
Names<PipelineSchedule> names_of(PipelineSchedule) {
  return {{"gpipe", PipelineSchedule::gpipe},
          {"1f1b", PipelineSchedule::one_f_one_b},
          {"interleaved", PipelineSchedule::interleaved}};
}
Names<Recompute> names_of(Recompute) { return {{"segment", Recompute::segment}, {"layer", Recompute::layer}}; }
Names<PublishMode> names_of(PublishMode) { return {{"sync", PublishMode::sync}, {"async", PublishMode::async}}; }
Names<CatalogKind> names_of(CatalogKind) { return {{"files", CatalogKind::files}, {"rocksdb", CatalogKind::rocksdb}}; }
Names<Decay> names_of(Decay) { return {{"constant", Decay::constant}, {"cosine", Decay::cosine}}; }
Names<Precision> names_of(Precision) {
  return {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}};
}
Names<Numerics> names_of(Numerics) { return {{"pinned", Numerics::pinned}, {"native", Numerics::native}}; }
Names<Device> names_of(Device) { return {{"cpu", Device::cpu}, {"cuda", Device::cuda}}; }
Names<Reduction> names_of(Reduction) { return {{"tree", Reduction::tree}, {"native", Reduction::native}}; }
Names<Guard> names_of(Guard) { return {{"off", Guard::off}, {"record", Guard::record}, {"check", Guard::check}}; }
Names<WorldKind> names_of(WorldKind) { return {{"sim", WorldKind::sim}, {"process", WorldKind::process}}; }
Names<RecoveryPolicy> names_of(RecoveryPolicy) {
  return {{"restart", RecoveryPolicy::restart}, {"spare", RecoveryPolicy::spare}, {"fewer", RecoveryPolicy::fewer}};
}
Names<CrashProfile> names_of(CrashProfile) {
  return {{"posix", CrashProfile::posix}, {"ext4", CrashProfile::ext4}, {"nfs", CrashProfile::nfs}};
}
Names<When> names_of(When) { return {{"before", When::before}, {"after", When::after}}; }
Names<Part> names_of(Part) { return {{"first", Part::first}, {"middle", Part::middle}, {"last", Part::last}}; }
Names<Landing> names_of(Landing) { return {{"offset", Landing::offset}, {"file", Landing::file}}; }
Names<Target> names_of(Target) {
  return {{"activation", Target::activation},
          {"gradient", Target::gradient},
          {"parameter", Target::parameter},
          {"moment", Target::moment}};
}
Names<PayloadDamage> names_of(PayloadDamage) {
  return {{"bit", PayloadDamage::bit}, {"nan", PayloadDamage::nan}, {"wrong_shard", PayloadDamage::wrong_shard}};
}
Names<Phase> names_of(Phase) {
  Names<Phase> names;
  for (int i = 0; i < phase_count; ++i) {
    names.emplace_back(to_string(static_cast<Phase>(i)), static_cast<Phase>(i));
  }
  return names;
}

}  // namespace firedrill
