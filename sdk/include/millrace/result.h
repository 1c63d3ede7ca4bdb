// Errors as values: `Result<T>` is std::expected with one error type, and three macros to pass an
// error on. Expected failures (network, disk, peers, input, plugins) are Results; a bug of our own
// is an MR_ASSERT, in every build, because going on would corrupt data; exceptions stay inside the
// library that throws them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace {

/// What kind of failure, for code that decides what to do next. People read `Error::detail`.
enum class Errc : std::int16_t {
  ok,
  invalid_argument,  ///< the caller asked for something that cannot be
  not_found,
  out_of_range,  ///< an offset, an index, a bound
  corrupt,       ///< bytes that are not what they claim to be
  too_large,     ///< beyond a named bound
  io,            ///< the operating system said no; detail has the path and errno's text
  timed_out,
  cancelled,  ///< whoever waited was told to stop waiting
  closed,     ///< the other end, or we, ended it
  conflict,   ///< a version, a lock or a name is taken
  fenced,     ///< an older epoch, or a lease that is gone
  overloaded,
  unsupported,
  incompatible,  ///< a plugin of another build
  internal,
};

std::string_view name_of(Errc code) noexcept;

/// `detail` says what, where, what was expected and what was found, in one line.
struct Error {
  Errc code = Errc::internal;
  std::string detail;
};

/// "corrupt: segment 0001.log: batch at byte 4096: ..."
std::string to_string(const Error& error);

/// Constructs from a T or from an Error, so that both `return value;` and
/// `return Error{Errc::corrupt, "..."};` read as they should.
template <class T = void>
struct [[nodiscard]] Result : std::expected<T, Error> {
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}
};

template <>
struct [[nodiscard]] Result<void> : std::expected<void, Error> {
  using std::expected<void, Error>::expected;
  Result(Error error) : std::expected<void, Error>(std::unexpected(std::move(error))) {}
};

namespace detail {
/// Ends the process with file, line and the condition that did not hold.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace detail

}  // namespace millrace

#define MR_DETAIL_CONCAT2(a, b) a##b
#define MR_DETAIL_CONCAT(a, b) MR_DETAIL_CONCAT2(a, b)
#define MR_DETAIL_TRY(result, keyword, declaration, expression) \
  auto&& result = (expression);                                 \
  if (!result) [[unlikely]]                                     \
    keyword std::move(result).error();                          \
  declaration = *std::move(result)

/// MR_TRY(auto bounds, log.append(batch));   declares `bounds`, or returns the Error to our caller.
#define MR_TRY(declaration, expression) \
  MR_DETAIL_TRY(MR_DETAIL_CONCAT(mr_result_, __COUNTER__), return, declaration, expression)
/// The same in a coroutine.
#define MR_CO_TRY(declaration, expression) \
  MR_DETAIL_TRY(MR_DETAIL_CONCAT(mr_result_, __COUNTER__), co_return, declaration, expression)

#define MR_DETAIL_CHECK(result, keyword, expression) \
  do {                                               \
    auto&& result = (expression);                    \
    if (!result) [[unlikely]]                        \
      keyword std::move(result).error();             \
  } while (false)
/// MR_CHECK(file.sync());   for a Result whose value does not matter.
#define MR_CHECK(expression) \
  MR_DETAIL_CHECK(MR_DETAIL_CONCAT(mr_result_, __COUNTER__), return, expression)
#define MR_CO_CHECK(expression) \
  MR_DETAIL_CHECK(MR_DETAIL_CONCAT(mr_result_, __COUNTER__), co_return, expression)

/// In every build: a condition that is false only by a bug of ours.
#define MR_ASSERT(condition)                                                \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::millrace::detail::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
