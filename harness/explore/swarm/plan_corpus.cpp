#include "harness/explore/swarm/plan_corpus.h"

#include <fmt/format.h>
#include <rocksdb/db.h>

#include <algorithm>

namespace firedrill {
namespace {

constexpr std::string_view plan_prefix = "plan/";
constexpr std::string_view feature_prefix = "feature/";

Error trouble(const std::string& what, const rocksdb::Status& status) {
  return {.code = Code::io_error,
          .message = fmt::format("the corpus cannot be {}: {}", what, status.ToString()),
          .hint = "one exploration at a time may have it open; give another --corpus, or wait for the other to end"};
}

}  // namespace

struct PlanCorpus::Database {
  std::unique_ptr<rocksdb::DB> db;
};

PlanCorpus::PlanCorpus(std::unique_ptr<Database> database) : database_(std::move(database)) {}
PlanCorpus::PlanCorpus(PlanCorpus&&) noexcept = default;
PlanCorpus::~PlanCorpus() = default;

Result<PlanCorpus> PlanCorpus::open(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);  // opening says what is wrong
  rocksdb::Options options;
  options.create_if_missing = true;
  options.keep_log_file_num = 1;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory.string(), &opened);
  if (!status.ok()) return trouble(fmt::format("opened at {}", directory.string()), status);
  auto database = std::make_unique<Database>();
  database->db.reset(opened);
  PlanCorpus corpus(std::move(database));
  FD_TRY_VOID(corpus.load());
  return corpus;
}

Status PlanCorpus::load() {
  const std::unique_ptr<rocksdb::Iterator> at(database_->db->NewIterator(rocksdb::ReadOptions()));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string key = at->key().ToString();
    if (key.starts_with(feature_prefix)) features_.push_back(key.substr(feature_prefix.size()));
    if (!key.starts_with(plan_prefix)) continue;
    FD_TRY(Plan plan, plan_from_json(at->value().ToStringView(), key));
    plans_.push_back(std::move(plan));
  }
  if (!at->status().ok()) return trouble("read", at->status());
  return {};
}

Status PlanCorpus::keep(const Plan& plan) {
  const std::string text = to_json(plan);
  const std::string key = fmt::format("{}{}", plan_prefix, digest_of(text).hex());
  std::string known;
  if (database_->db->Get(rocksdb::ReadOptions(), key, &known).ok()) return {};
  const rocksdb::Status put = database_->db->Put(rocksdb::WriteOptions(), key, text);
  if (!put.ok()) return trouble("written", put);
  plans_.push_back(plan);
  return {};
}

Status PlanCorpus::keep_features(const std::vector<std::string>& features) {
  rocksdb::WriteBatch batch;
  for (const std::string& feature : features) {
    const rocksdb::Status put = batch.Put(fmt::format("{}{}", feature_prefix, feature), "");
    if (!put.ok()) return trouble("written", put);
  }
  const rocksdb::Status written = database_->db->Write(rocksdb::WriteOptions(), &batch);
  if (!written.ok()) return trouble("written", written);
  return {};
}

}  // namespace firedrill
