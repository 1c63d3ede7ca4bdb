// The few messages of ZooKeeper's protocol that tell whether a server serves, and what there is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kernel::cli::doctor {

/// A session that asks whether each of `paths` exists and ends: all that is sent, in one piece.
std::string zookeeper_question(const std::vector<std::string>& paths);

/// Whether each path exists, in the order of the question; none where it is not told, as to
/// somebody who may not know. Nothing when the server took no session: it does not serve.
std::optional<std::vector<std::optional<bool>>> zookeeper_answer(std::string_view answer,
                                                                 std::size_t paths);

}  // namespace millrace::kernel::cli::doctor
