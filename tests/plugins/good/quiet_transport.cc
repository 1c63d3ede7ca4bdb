// A transport that listens to nobody, for several instances of one plugin.
#include <millrace/system_plugin.h>

namespace {

constexpr MillraceOption options[] = {
    {"listen", MILLRACE_OPTION_TEXT, nullptr, nullptr, millrace::unbounded_min,
     millrace::unbounded_max, nullptr, "What it answers as its address.", MILLRACE_OPTION_REQUIRED},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0},
};

class QuietTransport final : public millrace::Transport {
 public:
  explicit QuietTransport(millrace::Host& host) : host_(host) {}
  ~QuietTransport() override { host_.log().info("transport destroyed"); }
  QuietTransport(const QuietTransport&) = delete;
  QuietTransport& operator=(const QuietTransport&) = delete;

  millrace::Task<millrace::Endpoint> listen(millrace::Broker&) override {
    millrace::Endpoint endpoint;
    endpoint.listener = host_.options().text("listen");
    co_return endpoint;
  }
  millrace::Task<> stop(millrace::Duration) override { co_return {}; }

 private:
  millrace::Host& host_;
};

class QuietPlugin final : public millrace::Plugin {
 public:
  millrace::Result<> start(millrace::Registrar& registrar, millrace::Host& host) override {
    host.log().info("started",
                    {{"instance", host.instance()}, {"listen", host.options().text("listen")}});
    return registrar.add(std::make_unique<QuietTransport>(host));
  }
};

}  // namespace

MILLRACE_SYSTEM_PLUGIN(QuietPlugin, .kind = "transport", .id = "org.millrace.transport.quiet",
                       .version = "0.1.0", .options = options, .needs = "org.example.echo/1");
