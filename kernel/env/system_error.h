// Errors of the operating system as values of ours.
#pragma once

#include <string>

#include <millrace/result.h>

namespace millrace::kernel {

/// "open /data/x: No such file or directory". Errc::not_found, conflict, invalid_argument and
/// closed where the number says so, Errc::io for the rest.
Error system_error(int number, std::string what);

}  // namespace millrace::kernel
