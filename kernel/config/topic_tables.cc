#include "kernel/config/topic_tables.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/stream_check.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view partitions_key = "partitions";
constexpr std::string_view replication_key = "replication-factor";

std::vector<MillraceOption> with_own(const MillraceOption* settings) {
  std::vector<MillraceOption> all;
  for (const auto* option = topic_table_options(); option->name != nullptr; ++option) {
    all.push_back(*option);
  }
  for (const auto* option = settings; option->name != nullptr; ++option) all.push_back(*option);
  all.push_back({});
  return all;
}

// retention.ms = 1 without quotes makes a table `retention`.
bool begins_option(const MillraceOption* options, std::string_view key) {
  const auto beginning = concat(key, ".");
  for (const auto* option = options; option->name != nullptr; ++option) {
    if (std::string_view(option->name).starts_with(beginning)) return true;
  }
  return false;
}

// [topic.orders.clean] makes a table `clean` in that of orders.
std::vector<std::string> names_cut_at_dots(const std::string& name, const ConfigTable& table,
                                           const MillraceOption* options, ConfigErrors& errors) {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : table.entries()) {
    if (!std::holds_alternative<ConfigTable>(entry.value.value)) continue;
    if (begins_option(options, key)) continue;
    errors.push_back({entry.key, concat("a topic's name with dots is quoted: [topic.",
                                        quoted_key(concat(name, ".", key)), "]")});
    keys.push_back(key);
  }
  return keys;
}

TopicSettings check_topic(const std::string& name, const ConfigEntry& entry,
                          const MillraceOption* options, const ReadTable& read,
                          ConfigErrors& errors) {
  TopicSettings topic{.name = name, .place = entry.key};
  const auto path = "topic." + quoted_key(name);
  const auto* table = std::get_if<ConfigTable>(&entry.value.value);
  if (table == nullptr) {
    errors.push_back(
        {entry.key, path + " stands in the table of one topic, such as [topic.orders]"});
    return topic;
  }
  if (auto wrong = why_no_topic(name)) {
    errors.push_back({entry.key, concat("topic: ", *wrong)});
  }
  const auto others = names_cut_at_dots(name, *table, options, errors);
  for (auto& [option, value] : read(*table, path, options, others, entry.key)) {
    if (option == partitions_key) {
      topic.partitions = static_cast<std::int32_t>(std::get<std::int64_t>(value));
    } else if (option == replication_key) {
      topic.replication_factor = static_cast<std::int16_t>(std::get<std::int64_t>(value));
    } else {
      topic.configs.emplace(option, to_text(value));
    }
  }
  topic.places = places_in(*table);
  return topic;
}

}  // namespace

std::vector<TopicSettings> check_topics(const ConfigTable& topics, const MillraceOption* settings,
                                        const ReadTable& read, ConfigErrors& errors) {
  const auto options = with_own(settings);
  std::vector<TopicSettings> checked;
  for (const auto& [name, entry] : topics.entries()) {
    checked.push_back(check_topic(name, entry, options.data(), read, errors));
  }
  return checked;
}

}  // namespace millrace::kernel
