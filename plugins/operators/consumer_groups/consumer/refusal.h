// Why a request of a member is not done.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include <millrace/error_code.h>

namespace millrace::consumer_groups {

struct Refusal {
  ErrorCode error = ErrorCode::none;
  std::string message;
};

template <class T = void>
using Checked = std::expected<T, Refusal>;

inline std::unexpected<Refusal> refuse(ErrorCode error, std::string message) {
  return std::unexpected(Refusal{error, std::move(message)});
}

}  // namespace millrace::consumer_groups
