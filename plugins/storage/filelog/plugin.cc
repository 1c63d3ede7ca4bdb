#include <millrace/system_plugin.h>

#include "file_storage.h"

namespace millrace::filelog {

class FilelogPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const std::string folder(host.setting("broker.data"));
    if (folder.empty()) return Error{Errc::invalid_argument, "broker.data: no folder is set"};
    return registrar.add(std::make_unique<FileStorage>(host.environment(), folder, host.log()));
  }
};

}  // namespace millrace::filelog

MILLRACE_SYSTEM_PLUGIN(millrace::filelog::FilelogPlugin, .kind = "storage",
                       .id = "org.millrace.storage.filelog", .version = "0.1.0",
                       .summary = "append-only segment files in Kafka's on-disk format");
