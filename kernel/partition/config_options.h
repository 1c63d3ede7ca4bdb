// The settings that topics and brokers have, as tables under Kafka's names and units: type,
// default, bounds and help of each, what is inherited from what, and what may change while a broker
// runs. Parsing, checking, describing and the reference page are made from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/configs.h>
#include <millrace/options.h>
#include <millrace/result.h>

namespace millrace::kernel {

/// Settings by name, values as text.
using ConfigMap = std::map<std::string, std::string>;

/// What a setting is besides its option.
enum ConfigTraits : std::uint32_t {
  config_list = 1,           ///< values separated by commas; choices and checks are of each
  config_dynamic = 2,        ///< of a broker: may be changed while it runs
  config_only_when_set = 4,  ///< described where somebody has set it, as old names are
  config_fact = 8,           ///< of a broker: told, never set under this name
  config_of_all = 16,        ///< of a broker: set for all of them, never for one
  config_reread = 32,        ///< of a broker: not dynamic, yet a reload of the configuration counts
};

struct ConfigOption {
  MillraceOption option;
  std::uint32_t traits = 0;

  bool has(ConfigTraits trait) const noexcept { return (traits & trait) != 0; }
};

/// A setting of one topic. What is not set for the topic comes from the broker: from the first
/// synonym that is set, else it has its default.
struct TopicOption : ConfigOption {
  /// A broker-level name and how many of the topic's unit make one of its own.
  struct Synonym {
    const char* name = nullptr;
    std::int64_t factor = 1;
  };
  Synonym synonyms[3];  ///< strongest first; unused ones have no name
};

/// A setting of a broker. `weaker` names the one that counts where this is not set, if any.
struct BrokerOption : ConfigOption {
  const char* weaker = nullptr;
};

/// By name.  [any thread]
std::span<const TopicOption> topic_options() noexcept;
std::span<const BrokerOption> broker_config_options() noexcept;
/// nullptr when there is no such setting.
const TopicOption* find_topic_option(std::string_view name) noexcept;
const BrokerOption* find_broker_option(std::string_view name) noexcept;

/// The keys allowed in `[defaults]`: broker settings, and every topic setting under its own name.
/// Those that a reload takes over are marked as reloadable.
/// Ends with an entry whose name is null. Topic settings have no default here: where one is absent,
/// its broker-level synonyms count.  [any thread]
const MillraceOption* broker_defaults() noexcept;

/// The keys of topics' settings in `[topic.NAME]`, without defaults. Ends as the table above does.
/// [any thread]
const MillraceOption* topic_table_settings() noexcept;

/// Kafka's name for the type: an integer is as wide as its upper bound.
ConfigType type_of(const ConfigOption& option) noexcept;

/// Errc::invalid_argument names setting, value and what is allowed, in Kafka's words.
Result<> check_value(const ConfigOption& option, std::string_view value);

/// A value as it is shown and used: spaces, signs and case that do not matter are gone. What is not
/// of the option's type stays as it is.
std::string normal_value(const ConfigOption& option, std::string_view value);

/// The values of a list, without spaces around them.
std::vector<std::string_view> list_of(std::string_view value);
std::string list_text(const std::vector<std::string_view>& values);

std::optional<std::int64_t> integer_of(std::string_view text);
std::optional<double> number_of(std::string_view text);

/// Kafka's name of a release ("0.10.2", "2.8-IV1"): the record format that it stores, 0, 1 or 2.
std::optional<std::int8_t> record_format_of(std::string_view release);

}  // namespace millrace::kernel
