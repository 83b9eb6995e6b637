// How what a rank measured of the storage travels to the program that asked.
#include "harness/preflight/storage.h"

namespace firedrill::preflight {

void to_json(Json& json, const StorageTrouble& trouble) { json = {{"step", trouble.step}, {"error", trouble.error}}; }
void from_json(const Json& json, StorageTrouble& trouble) {
  json.at("step").get_to(trouble.step);
  json.at("error").get_to(trouble.error);
}

void to_json(Json& json, const StorageOfRank& r) {
  json = {{"troubles", r.troubles},
          {"races", r.races},
          {"won", r.won},
          {"renames", r.renames},
          {"reads", r.reads},
          {"missing", r.missing},
          {"mixed", r.mixed},
          {"backwards", r.backwards},
          {"file_syncs", r.file_syncs},
          {"directory_syncs", r.directory_syncs},
          {"seen_by_stat", r.seen_by_stat},
          {"seen_by_list", r.seen_by_list},
          {"seen_grown", r.seen_grown},
          {"free_bytes", r.free_bytes},
          {"free_inodes", r.free_inodes},
          {"moved", r.moved},
          {"write_seconds", r.write_seconds},
          {"read_seconds", r.read_seconds},
          {"read_wrong", r.read_wrong},
          {"moved_alone", r.moved_alone},
          {"write_alone_seconds", r.write_alone_seconds}};
}

void from_json(const Json& json, StorageOfRank& r) {
  json.at("troubles").get_to(r.troubles);
  json.at("races").get_to(r.races);
  json.at("won").get_to(r.won);
  json.at("renames").get_to(r.renames);
  json.at("reads").get_to(r.reads);
  json.at("missing").get_to(r.missing);
  json.at("mixed").get_to(r.mixed);
  json.at("backwards").get_to(r.backwards);
  json.at("file_syncs").get_to(r.file_syncs);
  json.at("directory_syncs").get_to(r.directory_syncs);
  json.at("seen_by_stat").get_to(r.seen_by_stat);
  json.at("seen_by_list").get_to(r.seen_by_list);
  json.at("seen_grown").get_to(r.seen_grown);
  json.at("free_bytes").get_to(r.free_bytes);
  json.at("free_inodes").get_to(r.free_inodes);
  json.at("moved").get_to(r.moved);
  json.at("write_seconds").get_to(r.write_seconds);
  json.at("read_seconds").get_to(r.read_seconds);
  json.at("read_wrong").get_to(r.read_wrong);
  json.at("moved_alone").get_to(r.moved_alone);
  json.at("write_alone_seconds").get_to(r.write_alone_seconds);
}

}  // namespace firedrill::preflight
