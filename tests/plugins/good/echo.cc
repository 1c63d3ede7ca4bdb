// A codec plugin that says what it was given. ECHO_NAME, ECHO_CODEC, ECHO_NEEDS and ECHO_PROVIDES
// come from the build, so that one source makes several plugins.
#include "echo_codec.h"

namespace {

constexpr MillraceOption options[] = {
    {"level", MILLRACE_OPTION_INTEGER, nullptr, "3", 1, 9, nullptr, "How hard to try.", 0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0},
};

class EchoPlugin final : public millrace::Plugin {
 public:
  ~EchoPlugin() override {
    if (log_ != nullptr) log_->info("plugin destroyed");
  }
  millrace::Result<> start(millrace::Registrar& registrar, millrace::Host& host) override {
    log_ = &host.log();
    log_->info("started", {{"instance", host.instance()},
                           {"level", host.options().integer("level")},
                           {"broker", host.setting("broker.id")},
                           {"absent", host.setting("broker.absent")}});
    return registrar.add(
        std::make_unique<millrace::probe::EchoCodec>(*log_, millrace::CompressionId::ECHO_CODEC));
  }

 private:
  const millrace::Log* log_ = nullptr;
};

}  // namespace

MILLRACE_PLUGIN(EchoPlugin, .kind = "compression", .id = "org.example.compression." ECHO_NAME,
                .version = "0.1.0", .options = options, .needs = ECHO_NEEDS,
                .provides = ECHO_PROVIDES);
