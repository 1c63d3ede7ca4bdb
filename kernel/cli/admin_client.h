// Asks a broker's admin API (transport `http`).
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include <millrace/environment.h>

namespace millrace::kernel::cli {

/// One request over a connection of its own. `body` empty: none. What the broker refuses is an
/// error with its message: Errc::not_found, conflict, invalid_argument by the answer's status;
/// Errc::closed or io when nobody answers there.
Task<boost::json::object> ask_admin(Network& network, std::string address, std::string method,
                                    std::string path, std::string body = {});

/// What an answer to a replacement says of brokers.
struct ReplacedWhere {
  std::string at;       ///< " at brokers 1, 3"; nothing of a broker that is alone
  Result<> everywhere;  ///< the error names the others, and why not
};
ReplacedWhere replaced_where(const boost::json::object& answer);

/// A member of an answer as it is shown; "?" where there is none.
std::string text_of(const boost::json::object& object, std::string_view name);

/// `text` as a segment of a path.
std::string path_segment(std::string_view text);

}  // namespace millrace::kernel::cli
