#include "kernel/env/system_error.h"

#include <cerrno>
#include <system_error>

namespace millrace::kernel {
namespace {

Errc code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return Errc::not_found;
    case EEXIST:
    case ENOTEMPTY:
    case EADDRINUSE: return Errc::conflict;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT: return Errc::invalid_argument;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED: return Errc::closed;
    default: return Errc::io;
  }
}

}  // namespace

Error system_error(int number, std::string what) {
  return {code_of(number), std::move(what) + ": " + std::generic_category().message(number)};
}

}  // namespace millrace::kernel
