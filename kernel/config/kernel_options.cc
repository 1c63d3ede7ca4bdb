#include "kernel/config/kernel_options.h"

#include <array>
#include <cstdint>
#include <limits>

namespace millrace::kernel {

namespace {

constexpr auto int16_max = std::numeric_limits<std::int16_t>::max();
constexpr auto int32_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t topic_partitions_max = 10'000;
constexpr std::int64_t shards_max = 256;
constexpr std::int64_t memory_bytes_min = 1 << 20;
constexpr std::int64_t memory_bytes_max = std::int64_t{1} << 40;
constexpr const char* level_choices = "trace|debug|info|warning|error";

constexpr MillraceOption text(const char* name, const char* fallback, const char* choices,
                              const char* help) {
  return {.name = name,
          .type = MILLRACE_OPTION_TEXT,
          .unit = nullptr,
          .default_value = fallback,
          .minimum = unbounded_min,
          .maximum = unbounded_max,
          .choices = choices,
          .help = help,
          .flags = 0};
}
constexpr MillraceOption integer(const char* name, const char* unit, const char* fallback,
                                 std::int64_t minimum, std::int64_t maximum, const char* help) {
  return {.name = name,
          .type = MILLRACE_OPTION_INTEGER,
          .unit = unit,
          .default_value = fallback,
          .minimum = minimum,
          .maximum = maximum,
          .choices = nullptr,
          .help = help,
          .flags = 0};
}
constexpr MillraceOption texts(const char* name, const char* fallback, const char* help) {
  MillraceOption option = text(name, fallback, nullptr, help);
  option.type = MILLRACE_OPTION_TEXTS;
  return option;
}
constexpr MillraceOption reloadable(MillraceOption option) {
  option.flags |= MILLRACE_OPTION_RELOADABLE;
  return option;
}
constexpr MillraceOption end_of_list = {};

constexpr MillraceOption broker_table[] = {
    integer("id", nullptr, "0", 0, int32_max, "This broker's number in its cluster."),
    text("data", "/var/lib/millrace/data", nullptr, "Folder that holds the logs of partitions."),
    text("rack", "", nullptr, "Where this broker stands; replicas are spread over racks."),
    integer("shards", nullptr, "0", 0, shards_max,
            "Threads that own connections and partitions; 0: one for two cores, up to a bound."),
    integer("memory", "bytes", "268435456", memory_bytes_min, memory_bytes_max,
            "Memory for requests in flight; beyond it connections are not read from."),
    end_of_list};

constexpr MillraceOption log_table[] = {
    reloadable(text("level", "info", level_choices, "Lines below this level are not written.")),
    text("format", "text", "text|json", "How a line looks: for people, or an object per line."),
    end_of_list};
constexpr MillraceOption log_level_table[] = {
    reloadable(text("SUBSYSTEM", nullptr, level_choices,
                    "Level of one subsystem, such as \"storage.filelog\", instead of log.level.")),
    end_of_list};

constexpr MillraceOption plugins_table[] = {
    texts("path", "", "More folders with KIND/NAME.so; they win over the installed ones."),
    end_of_list};

constexpr MillraceOption compression_table[] = {
    texts("plugins", nullptr, "Which codecs to load; not set: every one that is found."),
    end_of_list};
constexpr MillraceOption operators_table[] = {
    texts("plugins", nullptr,
          "Which plugins of this kind to load; not set: every one that is found and provides a "
          "service."),
    integer("snapshot_events", "events", "100000", 1, int32_max,
            "An aggregate's state is kept beside its log after so many events."),
    integer("snapshot_bytes", "bytes", "16777216", 1, memory_bytes_max,
            "The same, after so many bytes of events."),
    end_of_list};
constexpr MillraceOption coordination_table[] = {
    text("plugin", "standalone", nullptr, "The coordination plugin."), end_of_list};
constexpr MillraceOption cluster_table[] = {
    text("peer", "", nullptr,
         "NAME of the [transport.NAME] by which brokers reach each other; not set: the first that "
         "can. The same in all brokers of a cluster."),
    end_of_list};
constexpr MillraceOption storage_table[] = {
    text("plugin", "filelog", nullptr, "The storage plugin."), end_of_list};
constexpr MillraceOption transport_table[] = {
    text("plugin", nullptr, nullptr, "The transport plugin; not set: the table's own NAME."),
    end_of_list};
constexpr MillraceOption required(MillraceOption option) {
  option.flags |= MILLRACE_OPTION_REQUIRED;
  return option;
}
template <std::size_t N>
constexpr std::array<MillraceOption, N> all_reloadable(const MillraceOption (&table)[N]) {
  std::array<MillraceOption, N> marked{};
  for (std::size_t at = 0; at + 1 < N; ++at) marked[at] = reloadable(table[at]);
  return marked;
}
constexpr MillraceOption stream_rows[] = {
    required(texts("sources", nullptr,
                   "Topics to read; partition N of all of them is one task, with its own state.")),
    text("sink", "", nullptr,
         "Topic of what the last step emits; not set: only what names a topic of its own is kept."),
    text("guarantee", "at-least-once", "at-least-once|exactly-once",
         "Keyed state is exact; outputs may repeat after a crash. exactly-once is not there yet."),
    text("from", "earliest", "earliest|latest",
         "Where the stream begins that has no position yet."),
    text(
        "on-error", "stop", "stop|skip|dead-letter",
        "What becomes of a record that an operator fails on: the stream stops, goes on without it, "
        "or writes it to dead-letter."),
    text("dead-letter", "", nullptr,
         "Topic of records that failed; their headers have cause, topic, partition and offset."),
    integer("memory", "bytes", "268435456", stream_memory_bytes_min, stream_memory_bytes_max,
            "State and pending output, all tasks together; beyond it the stream stops."),
    integer("timeout", "ms", "30000", 1, stream_timeout_ms_max,
            "An operator that takes longer for a record stops the stream; another thread takes the "
            "place of its own."),
    end_of_list};
constexpr MillraceOption stream_step_rows[] = {
    required(text("operator", nullptr, nullptr,
                  "NAME of operators/NAME.so; its options stand beside it.")),
    text("name", nullptr, nullptr,
         "The step's own name, under which its state is kept; not set: that of the operator."),
    end_of_list};
constexpr auto stream_table = all_reloadable(stream_rows);
constexpr auto stream_step_table = all_reloadable(stream_step_rows);
constexpr MillraceOption topic_table[] = {
    integer("partitions", "partitions", nullptr, 1, topic_partitions_max,
            "How many the topic is made with; not set: num.partitions."),
    integer("replication-factor", "replicas", nullptr, 1, int16_max,
            "Replicas of each partition; not set: default.replication.factor. The topic is made "
            "once there are as many brokers."),
    end_of_list};

}  // namespace

const MillraceOption* broker_options() noexcept { return broker_table; }
const MillraceOption* log_options() noexcept { return log_table; }
const MillraceOption* log_level_options() noexcept { return log_level_table; }
const MillraceOption* plugins_options() noexcept { return plugins_table; }
const MillraceOption* compression_options() noexcept { return compression_table; }
const MillraceOption* operators_options() noexcept { return operators_table; }
const MillraceOption* coordination_options() noexcept { return coordination_table; }
const MillraceOption* cluster_options() noexcept { return cluster_table; }
const MillraceOption* storage_options() noexcept { return storage_table; }
const MillraceOption* transport_options() noexcept { return transport_table; }
const MillraceOption* stream_options() noexcept { return stream_table.data(); }
const MillraceOption* stream_step_options() noexcept { return stream_step_table.data(); }
const MillraceOption* topic_table_options() noexcept { return topic_table; }

}  // namespace millrace::kernel
