// Result<T>: a value, or an Error that names the thing, what was expected and what was found.
// Everything that comes from outside (file, prompt, flag) is reported this way; nothing throws
// across folders.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace winnow {

enum class ErrorCode {
  kInvalidArgument,  // a flag, request field or call argument is out of range
  kNotFound,         // a file or named thing does not exist
  kCorruptFile,      // a file contradicts its format
  kUnsupported,      // well-formed, but not something this build can do
  kOutOfMemory,      // would need more memory than there is
  kContextExceeded,  // prompt (plus answer) is longer than the context
  kInterrupted,      // cancelled by the user
  kNumerical,        // NaN or infinity where a finite number is required
  kIo,               // the operating system refused a read or write
  kStorageFull,      // a disk, or what may be kept on it, is full
  kOverloaded,       // the queue is full; the same request may succeed later
  kShuttingDown,     // no more requests are taken
  kInternal,         // a fault of the program's own
};

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

// printf-style constructor of an Error.
[[gnu::format(printf, 2, 3)]] Error fail(ErrorCode code, const char* format, ...);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Requires ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  // Requires !ok().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

#define WINNOW_CONCAT_(a, b) a##b
#define WINNOW_CONCAT(a, b) WINNOW_CONCAT_(a, b)

// TRY(auto x, expr): x becomes the value of the Result `expr`, or the enclosing function returns
// its error.
#define TRY(target, ...) TRY_IMPL_(WINNOW_CONCAT(try_result_, __LINE__), target, __VA_ARGS__)
#define TRY_IMPL_(temp, target, ...)              \
  auto temp = (__VA_ARGS__);                      \
  if (!temp.ok()) return std::move(temp).error(); \
  target = std::move(temp).value()

// TRY_STATUS(expr): the enclosing function returns the error of `expr`, if it has one.
#define TRY_STATUS(...) \
  if (auto try_status = (__VA_ARGS__); !try_status.ok()) return std::move(try_status).error()

}  // namespace winnow
