// Result<T>: a value or an Error. The lane in which trouble of the environment travels; nothing throws across a seam.
//
//   Result<Value> shard = file->read(0, size);
//   if (!shard) return shard.error();
//
// or, in a function that itself returns a Result:
//
//   FD_TRY(Value shard, file->read(0, size));
#pragma once

#include <optional>
#include <utility>

#include "engine/base/error.h"

namespace firedrill {

// The error of a Result on its way. Whatever is done with one is out of line, away from what runs when all is well.
class Failed {
 public:
  Failed() = default;
  [[gnu::cold]] explicit Failed(Error error);
  Failed(Failed&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Failed& operator=(Failed&& other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Failed() {
    if (error_ != nullptr) [[unlikely]]
      forget(error_);
  }

  explicit operator bool() const { return error_ != nullptr; }
  const Error& operator*() const { return *error_; }
  Error& operator*() { return *error_; }

 private:
  [[gnu::cold]] static void forget(Error* error) noexcept;

  Error* error_ = nullptr;
};

// Its constructors are implicit, so that a function reads as `return value;`.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                     // NOLINT(google-explicit-constructor)
  Result(Error error) : failed_(std::move(error)) {}                // NOLINT(google-explicit-constructor)
  Result(Failed failure) noexcept : failed_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T value_or(T other) && { return value_ ? *std::move(value_) : std::move(other); }

  const Error& error() const& { return *failed_; }
  Error error() && { return std::move(*failed_); }
  Failed failed() && { return std::move(failed_); }
  bool failed_with(Code code) const { return failed_ && (*failed_).code == code; }

 private:
  std::optional<T> value_;
  Failed failed_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(std::move(error)) {}                // NOLINT(google-explicit-constructor)
  Result(Failed failure) noexcept : failed_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !failed_; }
  bool ok() const { return !failed_; }
  const Error& error() const& { return *failed_; }
  Error error() && { return std::move(*failed_); }
  Failed failed() && { return std::move(failed_); }
  bool failed_with(Code code) const { return failed_ && (*failed_).code == code; }

 private:
  Failed failed_;
};

using Status = Result<void>;

}  // namespace firedrill

#define FD_CONCAT_INNER(a, b) a##b
#define FD_CONCAT(a, b) FD_CONCAT_INNER(a, b)

// FD_TRY(declaration, expression): declares from the value, or returns the error.
#define FD_TRY(declaration, ...) FD_TRY_IMPL(FD_CONCAT(fd_result_, __LINE__), declaration, __VA_ARGS__)
#define FD_TRY_IMPL(result, declaration, ...) \
  auto result = (__VA_ARGS__);                \
  if (!result) [[unlikely]]                   \
    return std::move(result).failed();        \
  declaration = *std::move(result)

// FD_TRY_VOID(expression): returns the error, if there is one.
#define FD_TRY_VOID(...)                                         \
  do {                                                           \
    if (auto fd_status = (__VA_ARGS__); !fd_status) [[unlikely]] \
      return std::move(fd_status).failed();                      \
  } while (false)
