#include <millrace/system_plugin.h>

#include "file_storage.h"

namespace millrace::filelog {

namespace {

constexpr MillraceOption declared_options[] = {
    {"open_files_max", MILLRACE_OPTION_INTEGER, nullptr, "4096", 16, 1'000'000, nullptr,
     "How many log files are kept open, an eighth of the files that the process may have open at "
     "most; those not used for the longest time are closed.",
     0},
    {"reserve_bytes", MILLRACE_OPTION_INTEGER, "bytes", "67108864", 0, std::int64_t{1} << 40,
     nullptr,
     "So much of the disk, or a 64th of a small one, is kept free of records for checkpoints, "
     "metadata and deletions; producers are told to try again while less is free.",
     0},
    {"cold_ahead_bytes", MILLRACE_OPTION_INTEGER, "bytes", "8388608", 0, std::int64_t{1} << 30,
     nullptr,
     "How far a reader of records that are no longer in memory is read ahead of; 0: not at all.",
     0},
    {"cold_kept_bytes", MILLRACE_OPTION_INTEGER, "bytes", "268435456", 1 << 20,
     std::int64_t{1} << 40, nullptr,
     "So much that readers of old records have had read from the disk may stay in memory, for "
     "those "
     "who come after them; the rest of the memory is left to what is written and read now.",
     0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0},
};

}  // namespace

class FilelogPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const std::string folder(host.setting("broker.data"));
    if (folder.empty()) return Error{Errc::invalid_argument, "broker.data: no folder is set"};
    const auto& options = host.options();
    const StorageSettings settings{
        .open_files_max =
            files_to_keep_open(host.environment().files(),
                               static_cast<std::size_t>(options.integer("open_files_max"))),
        .reserve_bytes = static_cast<std::uint64_t>(options.integer("reserve_bytes")),
        .cold = {.ahead_bytes_max = static_cast<std::uint64_t>(options.integer("cold_ahead_bytes")),
                 .kept_bytes_max = static_cast<std::uint64_t>(options.integer("cold_kept_bytes"))}};
    return registrar.add(
        std::make_unique<FileStorage>(host.environment(), folder, settings, host.log()));
  }
};

}  // namespace millrace::filelog

MILLRACE_SYSTEM_PLUGIN(millrace::filelog::FilelogPlugin, .kind = "storage",
                       .id = "org.millrace.storage.filelog", .version = MILLRACE_VERSION,
                       .summary = "append-only segment files in Kafka's on-disk format",
                       .options = millrace::filelog::declared_options);
