// Result<T>: a value or an Error. The lane in which trouble of the environment travels; nothing throws across a seam.
//
//   Result<Value> shard = file->read(0, size);
//   if (!shard) return shard.error();
//
// or, in a function that itself returns a Result:
//
//   FD_TRY(Value shard, file->read(0, size));
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/base/error.h"

namespace firedrill {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): reads as `return value;`
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T value_or(T other) && { return value_ ? *std::move(value_) : std::move(other); }

  const Error& error() const& { return *error_; }
  Error error() && { return std::move(*error_); }
  bool failed_with(Code code) const { return error_ && error_->code == code; }

 private:
  std::optional<T> value_;
  std::unique_ptr<Error> error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !error_; }
  bool ok() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error error() && { return std::move(*error_); }
  bool failed_with(Code code) const { return error_ && error_->code == code; }

 private:
  std::unique_ptr<Error> error_;
};

using Status = Result<void>;

}  // namespace firedrill

#define FD_CONCAT_INNER(a, b) a##b
#define FD_CONCAT(a, b) FD_CONCAT_INNER(a, b)

// FD_TRY(declaration, expression): declares from the value, or returns the error.
#define FD_TRY(declaration, ...) FD_TRY_IMPL(FD_CONCAT(fd_result_, __LINE__), declaration, __VA_ARGS__)
#define FD_TRY_IMPL(result, declaration, ...)    \
  auto result = (__VA_ARGS__);                   \
  if (!result) return std::move(result).error(); \
  declaration = *std::move(result)

// FD_TRY_VOID(expression): returns the error, if there is one.
#define FD_TRY_VOID(...)                                                                 \
  do {                                                                                   \
    if (auto fd_status = (__VA_ARGS__); !fd_status) return std::move(fd_status).error(); \
  } while (false)
