// Whether a data directory is in use, without taking it.
#pragma once

#include <string>

#include <millrace/result.h>

namespace millrace::kernel {

/// "process 4711", or what else is known of who holds the lock file at `path`, as FileSystem::lock
/// or as Kafka takes it; empty when nobody does, or there is no such file. Nobody who takes the
/// lock meanwhile is refused.  [any thread]
Result<std::string> lock_holder(const std::string& path);

}  // namespace millrace::kernel
