#include "kernel/takeover/kafka_directory.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include <millrace/buffer.h>

namespace millrace::kernel {

namespace {

constexpr std::string_view metadata_topic = "__cluster_metadata";

std::string metadata_folder(const std::string& data) {
  return data + "/" + std::string(metadata_topic) + "-0";
}

std::optional<TopicPartition> parse_folder(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  TopicPartition found{.topic = std::string(name.substr(0, dash))};
  const auto digits = name.substr(dash + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), found.partition);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (found.topic == metadata_topic || to_string(found) != name) return std::nullopt;
  return found;
}

Result<std::string> text_of(FileSystem& files, const std::string& path) {
  const auto content = read_file(files, path);
  if (!content && content.error().code == Errc::not_found) return std::string();
  if (!content) return content.error();
  return std::string(content->text());
}

/// `partition.metadata`: "version: 0" and "topic_id: ..."; brokers before 2.8 do not write it.
Result<Uuid> read_topic_id(FileSystem& files, const std::string& folder) {
  const auto path = folder + "/partition.metadata";
  MR_TRY(const auto text, text_of(files, path));
  constexpr std::string_view label = "topic_id: ";
  const auto at = text.find(label);
  if (at == std::string::npos) return Uuid{};
  const auto value = text.substr(at + label.size());
  const auto id = parse_uuid(value.substr(0, value.find_first_of("\r\n")));
  if (!id) return Error{Errc::corrupt, path + ": the topic id is not 22 characters of base64url"};
  return *id;
}

/// `leader-epoch-checkpoint`: a version, a count, then lines of an epoch and its start offset.
Result<Epoch> read_last_epoch(FileSystem& files, const std::string& folder) {
  MR_TRY(const auto text, text_of(files, folder + "/leader-epoch-checkpoint"));
  std::istringstream lines(text);
  std::int32_t version = 0;
  std::int32_t count = 0;
  Epoch last{0};
  lines >> version >> count;
  Epoch epoch;
  std::int64_t start = 0;
  while (lines >> epoch.value >> start) last = epoch;
  return last;
}

}  // namespace

bool has_metadata_log(FileSystem& files, const std::string& data) {
  return files.info(metadata_folder(data)).has_value();
}

Result<bool> is_of_zookeeper(FileSystem& files, const std::string& data) {
  MR_TRY(const auto text, text_of(files, data + "/meta.properties"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "version=0" || line == "version=0\r") return true;
  }
  return false;
}

Result<bool> has_partition_folders(FileSystem& files, const std::string& data) {
  MR_TRY(const auto listed, files.list(data));
  return std::ranges::any_of(listed, [](const auto& entry) {
    return entry.is_folder && parse_folder(entry.name).has_value();
  });
}

Result<std::optional<KafkaMetadata>> read_kraft_directory(FileSystem& files,
                                                          const std::string& data) {
  if (!has_metadata_log(files, data)) return std::optional<KafkaMetadata>();
  MR_TRY(auto metadata, read_metadata_log(files, metadata_folder(data)));
  return std::optional(std::move(metadata));
}

Result<std::vector<TopicState>> topics_of_folders(FileSystem& files, const std::string& data,
                                                  std::int32_t broker_id) {
  MR_TRY(const auto listed, files.list(data));
  std::map<std::string, std::map<std::int32_t, std::string>> folders;
  for (const auto& entry : listed) {
    const auto found = entry.is_folder ? parse_folder(entry.name) : std::nullopt;
    if (found) folders[found->topic][found->partition] = data + "/" + entry.name;
  }
  std::vector<TopicState> topics;
  std::map<Uuid, std::string> names;
  for (const auto& [name, partitions] : folders) {
    TopicState topic{.name = name, .id = {}, .configs = {}, .partitions = {}};
    for (const auto& [number, folder] : partitions) {
      if (static_cast<std::size_t>(number) != topic.partitions.size()) {
        return Error{Errc::corrupt, data + ": topic '" + name + "' has partition " +
                                        std::to_string(number) + " but not " +
                                        std::to_string(topic.partitions.size())};
      }
      MR_TRY(const auto id, read_topic_id(files, folder));
      if (!id.is_none() && !topic.id.is_none() && id != topic.id) {
        return Error{Errc::corrupt, folder + ": belongs to topic id " + to_string(id) +
                                        ", partitions before it to " + to_string(topic.id)};
      }
      if (!id.is_none()) topic.id = id;
      MR_TRY(const auto epoch, read_last_epoch(files, folder));
      topic.partitions.push_back({.leader = broker_id,
                                  .leader_epoch = epoch,
                                  .replicas = {broker_id},
                                  .in_sync = {broker_id}});
    }
    const auto other = topic.id.is_none() ? names.end() : names.emplace(topic.id, name).first;
    if (other != names.end() && other->second != name) {
      return Error{Errc::corrupt, data + ": topics '" + other->second + "' and '" + name +
                                      "' both have the id " + to_string(topic.id)};
    }
    topics.push_back(std::move(topic));
  }
  return topics;
}

}  // namespace millrace::kernel
