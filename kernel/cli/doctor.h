// millrace doctor: what is wrong on the machine of a broker, or soon will be; why we think so, and
// what to do. Each check is a function that looks through a Probe, so that a test shows it any
// machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/operations.h>
#include <millrace/result.h>

namespace millrace::kernel::cli::doctor {

enum class Severity { ok, warning, problem };
std::string_view name_of(Severity severity) noexcept;

struct Finding {
  std::string check;  ///< "disk.space": stays the same, for programs
  Severity severity = Severity::ok;
  std::string finding;   ///< what it is, in one sentence
  std::string evidence;  ///< where that was seen, and what exactly
  std::string remedy;    ///< what to do; empty when all is well
};
using Findings = std::vector<Finding>;

struct FileFacts {
  bool is_folder = false;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;  ///< the permission bits alone
};

/// The file system that a path is on.
struct VolumeFacts {
  std::uint64_t bytes = 0;
  std::uint64_t bytes_free = 0;  ///< for users other than root
  std::uint64_t inodes = 0;      ///< 0: it does not count them
  std::uint64_t inodes_free = 0;
};

struct ClockFacts {
  bool synchronised = false;
  Duration error_max{};  ///< by how much it may be wrong, as the system estimates
};

/// A plugin that a folder has and the kernel refuses.
struct RefusedPlugin {
  std::string path;
  std::string reason;
};

/// The machine as it is seen. Errors: Errc::not_found when there is no such thing, anything else
/// when it could not be looked at.  [main thread]
class Probe {
 public:
  virtual ~Probe() = default;

  /// A small file as a whole.
  virtual Result<std::string> read(const std::string& path) = 0;
  /// Names in a folder.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;
  virtual Result<FileFacts> look_at(const std::string& path) = 0;
  /// Where a symbolic link leads.
  virtual Result<std::string> target_of(const std::string& link) = 0;
  virtual Result<VolumeFacts> volume(const std::string& path) = 0;
  virtual Result<ClockFacts> clock() = 0;
  /// Whose rights the tool has.
  virtual std::uint32_t user() = 0;

  /// Addresses of a host's name.
  virtual Result<std::vector<std::string>> addresses_of(const std::string& host) = 0;
  /// Whether one could listen there now; Errc::conflict when somebody does.
  virtual Result<> try_listen(const Address& address) = 0;
  virtual Result<> try_connect(const Address& address) = 0;
  /// All that is answered to `text` until the other side closes.
  virtual Result<std::string> say(const Address& address, std::string_view text) = 0;
  /// What a broker tells of its cluster, by Kafka's protocol: all topics.
  virtual Result<MetadataAnswer> metadata(const std::string& address) = 0;
  /// Of all plugins that lie in the folders.
  virtual std::vector<RefusedPlugin> refused_plugins() = 0;
};

/// A [transport.NAME] of the configuration.
struct ListenerFacts {
  std::string name;
  std::string plugin;
  std::string listen;
  /// Empty: the address listened on. None: the transport has no clients that are told one.
  std::optional<std::string> advertise;
};

struct BrokerProcess {
  std::uint32_t pid = 0;
  std::string found_by;  ///< the file that names it
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups;
};

struct ServiceUser {
  std::string name;
  std::uint32_t id = 0;
  std::vector<std::uint32_t> groups;
};

/// Who is looked at: what his configuration says, and what is known of the running broker.
struct Patient {
  std::string config;                       ///< the file; empty: the embedded default
  std::vector<Error> config_wrong;          ///< nothing else is known then of what follows
  std::vector<std::string> config_remarks;  ///< what it says and hardly means
  std::map<std::string, std::string, std::less<>> settings;  ///< every option, by key
  std::vector<ListenerFacts> listeners;
  std::size_t plugins = 0;  ///< that the configuration loads
  std::string bootstrap;    ///< where the broker speaks Kafka's protocol; empty: nowhere
  std::string admin;        ///< where it is administered; empty: nowhere
  std::optional<BrokerProcess> broker;
  ServiceUser user;

  /// Empty when there is no such option.
  std::string setting(std::string_view key) const;
  std::uint64_t number(std::string_view key) const;
  std::string data() const { return setting("broker.data"); }
};

using Check = Findings (*)(const Patient& patient, Probe& probe);

// doctor_config.cc
Findings check_config(const Patient& patient, Probe& probe);
Findings check_plugins(const Patient& patient, Probe& probe);
// doctor_disk.cc
Findings check_data_folder(const Patient& patient, Probe& probe);
Findings check_space(const Patient& patient, Probe& probe);
Findings check_retention(const Patient& patient, Probe& probe);
Findings check_file_system(const Patient& patient, Probe& probe);
Findings check_inodes(const Patient& patient, Probe& probe);
// doctor_limits.cc
Findings check_process(const Patient& patient, Probe& probe);
Findings check_open_files(const Patient& patient, Probe& probe);
Findings check_map_count(const Patient& patient, Probe& probe);
// doctor_memory.cc
Findings check_memory(const Patient& patient, Probe& probe);
Findings check_memory_limit(const Patient& patient, Probe& probe);
Findings check_swap(const Patient& patient, Probe& probe);
Findings check_pressure(const Patient& patient, Probe& probe);
Findings check_dirty_pages(const Patient& patient, Probe& probe);
// doctor_clock.cc
Findings check_clock(const Patient& patient, Probe& probe);
// doctor_network.cc
Findings check_ports(const Patient& patient, Probe& probe);
Findings check_advertised(const Patient& patient, Probe& probe);
// doctor_zookeeper.cc
Findings check_zookeeper(const Patient& patient, Probe& probe);
// doctor_broker.cc
Findings check_cluster(const Patient& patient, Probe& probe);
Findings check_health(const Patient& patient, Probe& probe);
Findings check_scrubbed(const Patient& patient, Probe& probe);
Findings check_version(const Patient& patient, Probe& probe);

/// What all of them find, in the order in which it is told. Where the configuration is wrong, what
/// it would say of the broker is not known, and only the machine is looked at.
Findings examine(const Patient& patient, Probe& probe);

/// The process that holds a lock of the data folder, or that systemd runs as millrace.service.
std::optional<BrokerProcess> find_broker(const std::string& data, Probe& probe);
/// Who the service runs as: `wanted`, else the running broker's user, else what the package makes,
/// if it is there and the tool may look at all (is root), else who runs the tool.
ServiceUser service_user(const std::string& wanted, const std::optional<BrokerProcess>& broker,
                         Probe& probe);

}  // namespace millrace::kernel::cli::doctor
