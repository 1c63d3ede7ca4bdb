// What `millrace plugin list` tells of the plugins of this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

/// By the lists that dpkg keeps in `lists`: the package of each of `files`; of none: "". A file
/// below a folder that was moved by the merge of /usr is found under both names.
std::map<std::string, std::string> packages_of(const std::vector<std::string>& files,
                                               const std::string& lists = "/var/lib/dpkg/info");

/// One plugin of a running broker, or the operator of a step of a stream.
struct PluginUse {
  std::string kind;
  std::string id;
  std::string version;
  std::string path;
  std::string table;  ///< of the configuration, "transport.kafka"
  std::string since;  ///< ""; not told
};
/// From what /admin/plugins answers.
std::vector<PluginUse> uses_of(const boost::json::object& answer);

/// Finds, tries, asks the broker at `admin`, and prints. A broker that does not answer is no error:
/// what it uses is not known then, which is said.
Result<> list_plugins(const Context& context, const std::string& admin);

}  // namespace millrace::kernel::cli
