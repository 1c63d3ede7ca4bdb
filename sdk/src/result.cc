#include <millrace/result.h>

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace millrace {

std::string_view name_of(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::invalid_argument: return "invalid argument";
    case Errc::not_found: return "not found";
    case Errc::out_of_range: return "out of range";
    case Errc::corrupt: return "corrupt";
    case Errc::too_large: return "too large";
    case Errc::io: return "i/o";
    case Errc::timed_out: return "timed out";
    case Errc::cancelled: return "cancelled";
    case Errc::closed: return "closed";
    case Errc::conflict: return "conflict";
    case Errc::fenced: return "fenced";
    case Errc::overloaded: return "overloaded";
    case Errc::unsupported: return "unsupported";
    case Errc::incompatible: return "incompatible";
    case Errc::internal: break;
  }
  return "internal";
}

std::string to_string(const Error& error) {
  return std::string(name_of(error.code)) + ": " + error.detail;
}

void detail::assertion_failed(const char* condition, const char* file, int line) noexcept {
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  std::fprintf(stderr, "%s:%d: assertion failed: %s (thread %s)\n", file, line, condition, thread);
  std::abort();
}

}  // namespace millrace
