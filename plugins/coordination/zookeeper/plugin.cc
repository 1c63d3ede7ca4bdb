#include <millrace/system_plugin.h>

#include "connect.h"
#include "zookeeper.h"

namespace millrace::zookeeper {
namespace {

constexpr MillraceOption declared_options[] = {
    {"connect", MILLRACE_OPTION_TEXT, nullptr, "127.0.0.1:2181", unbounded_min, unbounded_max,
     nullptr,
     "The servers, \"host:port,host:port\", and after them the path below which everything is "
     "kept, \"/millrace\"; it is made when it is missing.",
     0},
    {"session-timeout", MILLRACE_OPTION_INTEGER, "ms", "6000", 1'000, 300'000, nullptr,
     "When a broker is silent for so long, the others take it for dead; servers grant no less than "
     "two of their ticks.",
     0},
    {"start-timeout", MILLRACE_OPTION_INTEGER, "ms", "60000", 0, 86'400'000, nullptr,
     "How long a start waits for ZooKeeper before it gives up.", 0},
    {"digest", MILLRACE_OPTION_TEXT, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "\"user:password\" for ZooKeeper's digest authentication.", MILLRACE_OPTION_SECRET},
    {"acl", MILLRACE_OPTION_TEXT, nullptr, "open", unbounded_min, unbounded_max,
     "open|owner|owner-writes",
     "Who may use what this broker writes: anybody, the user of digest alone, or everybody for "
     "reading and that user for writing.",
     0},
    {"tls", MILLRACE_OPTION_BOOLEAN, nullptr, "false", unbounded_min, unbounded_max, nullptr,
     "Not possible with Debian's client library, and refused.", 0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0}};

Access access_of(std::string_view text) {
  if (text == "owner") return Access::owner;
  return text == "owner-writes" ? Access::owner_writes : Access::open;
}

class ZooKeeperPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto& options = host.options();
    if (options.boolean("tls")) {
      return Error{Errc::unsupported,
                   "tls = true: ZooKeeper's client library in Debian 12 is built without TLS; keep "
                   "the connection in a trusted network or a tunnel, and set tls = false"};
    }
    MR_TRY(auto connect, parse_connect(options.text("connect")));
    const auto access = access_of(options.text("acl"));
    const auto& digest = options.text("digest");
    if (!digest.empty() && digest.find(':') == std::string::npos) {
      return Error{Errc::invalid_argument, "digest: write it as \"user:password\""};
    }
    if (access != Access::open && digest.empty()) {
      return Error{Errc::invalid_argument, "acl = \"" + options.text("acl") +
                                               "\" needs to know who the owner is: set digest"};
    }
    return registrar.add(std::make_unique<ZooKeeper>(
        host.environment(), host.log(),
        Settings{.connect = std::move(connect),
                 .session_timeout = std::chrono::milliseconds(options.integer("session-timeout")),
                 .start_timeout = std::chrono::milliseconds(options.integer("start-timeout")),
                 .access = access,
                 .digest = digest,
                 .data = std::string(host.setting("broker.data"))}));
  }
};

}  // namespace
}  // namespace millrace::zookeeper

MILLRACE_SYSTEM_PLUGIN(millrace::zookeeper::ZooKeeperPlugin, .kind = "coordination",
                       .id = "org.millrace.coordination.zookeeper", .version = MILLRACE_VERSION,
                       .summary = "the cluster's metadata in ZooKeeper",
                       .options = millrace::zookeeper::declared_options);
