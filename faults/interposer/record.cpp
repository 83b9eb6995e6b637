#include "faults/interposer/record.h"

#include <array>

namespace firedrill::interposer {
namespace {

template <std::size_t Size>
std::string_view name_in(const std::array<std::string_view, Size>& names, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(Size) ? names[static_cast<std::size_t>(index)]
                                                               : std::string_view();
}

}  // namespace

std::string_view to_string(Op op) {
  static constexpr std::array<std::string_view, op_count> names = {
      "none",         "all_reduce", "broadcast",     "reduce",      "all_gather",  "reduce_scatter",
      "all_to_all",   "gather",     "scatter",       "send",        "recv",        "group_start",
      "group_end",    "comm_init",  "comm_init_all", "comm_split",  "comm_shrink", "comm_finalize",
      "comm_destroy", "comm_abort", "comm_revoke",   "async_error", "fault"};
  return name_in(names, static_cast<int>(op));
}

std::string_view type_name(std::int32_t dtype) {
  static constexpr std::array<std::string_view, type_count> names = {"int8",    "uint8",    "int32",      "uint32",
                                                                     "int64",   "uint64",   "float16",    "float32",
                                                                     "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return name_in(names, dtype);
}

std::string_view reduction_name(std::int32_t redop) {
  static constexpr std::array<std::string_view, reduction_count> names = {"sum", "prod", "max", "min", "avg"};
  return redop >= reduction_count ? "custom" : name_in(names, redop);
}

std::string_view result_name(std::int32_t result) {
  static constexpr std::array<std::string_view, 8> names = {"success",        "unhandled_cuda_error", "system_error",
                                                            "internal_error", "invalid_argument",     "invalid_usage",
                                                            "remote_error",   "in_progress"};
  const std::string_view name = name_in(names, result);
  return name.empty() ? "unknown" : name;
}

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, kind_count> names = {"delay", "skip", "reorder", "wrong_count",
                                                                     "kill",  "hang", "stall"};
  return name_in(names, static_cast<int>(kind));
}

std::string_view to_string(FaultEvent event) {
  static constexpr std::array<std::string_view, fault_event_count> names = {"none", "fired", "held", "not_fired"};
  return name_in(names, static_cast<int>(event));
}

std::string_view to_string(Reason reason) {
  static constexpr std::array<std::string_view, reason_count> sentences = {
      "",
      "the program waited, or used the stream otherwise, between the two calls",
      "a call for another communicator came between the two calls",
      "a group began or ended between the two calls",
      "no second call on the communicator came in time",
      "the program's CUDA runtime is linked statically, so its waits cannot be seen",
      "the program's own count is 0",
      "the planned count is not below the program's, and would overrun its buffers",
      "another fault of the plan hit this call or the next one",
      "it has fired before in this run",
      "the program ended first"};
  return name_in(sentences, static_cast<int>(reason));
}

std::string_view to_string(State state) {
  static constexpr std::array<std::string_view, state_count> names = {"entered", "returned", "skipped"};
  return name_in(names, static_cast<int>(state));
}

}  // namespace firedrill::interposer
