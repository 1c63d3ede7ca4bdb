// Starting a named thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include <millrace/result.h>

namespace millrace::kernel {

/// Runs `body` in a thread that shows as `name` (at most 15 characters) in ps and debuggers. It
/// never gets SIGPIPE, which sendfile would raise on a connection that the peer has closed.
Result<std::thread> start_thread(const std::string& name, std::move_only_function<void()> body);

}  // namespace millrace::kernel
