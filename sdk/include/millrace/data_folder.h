// The folder of a broker's data, which storage and coordination find and make in any order.
#pragma once

#include <string>

#include <millrace/environment.h>

namespace millrace {

/// Makes `path` with what is missing above it, and makes their names durable: else a power cut soon
/// after the first start takes the folder, with all that was synced in it.  [may block on the disk]
Result<> make_data_folder(FileSystem& files, const std::string& path);

}  // namespace millrace
