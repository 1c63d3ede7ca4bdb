#include "kernel/streams/stream_changelog.h"

#include <utility>

#include <millrace/admin.h>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

const Duration admin_limit = std::chrono::seconds(30);
// A batch of changes is as large as the state that a turn changes.
constexpr const char* batch_bytes_max = "1073741824";

}  // namespace

StreamChangelog::StreamChangelog(StreamParts& parts, std::string stream)
    : parts_(parts), stream_(std::move(stream)), topic_(changelog_of(stream_)) {}

Task<> StreamChangelog::ensure(Session& session, std::optional<std::int32_t> known,
                               std::int32_t partitions) {
  if (!known) {
    CreateTopicsRequest request{.topics = {}, .timeout = admin_limit};
    auto& wanted = request.topics.emplace_back();
    wanted.name = topic_;
    wanted.partitions = partitions;
    wanted.configs = {{"cleanup.policy", "compact"}, {"max.message.bytes", batch_bytes_max}};
    auto creating = parts_.broker.admin().create_topics(session, std::move(request));
    MR_CO_TRY(const auto created, co_await std::move(creating));
    const auto& answer = created.at(0);
    if (answer.error == ErrorCode::none || answer.error == ErrorCode::topic_already_exists) {
      co_return {};
    }
    co_return Error{Errc::io, concat("cannot make ", topic_, ": ", answer.message)};
  }
  if (*known >= partitions) co_return {};
  GrowTopicsRequest request{.topics = {}, .timeout = admin_limit};
  request.topics.push_back({topic_, partitions, std::nullopt});
  auto growing = parts_.broker.admin().grow_topics(session, std::move(request));
  MR_CO_TRY(const auto grown, co_await std::move(growing));
  if (grown.at(0).error == ErrorCode::none) co_return {};
  co_return Error{Errc::io, concat("cannot grow ", topic_, ": ", grown.at(0).message)};
}

Task<> StreamChangelog::keep(bool kept) {
  auto change = [&broker = parts_.broker, topic = topic_, stream = stream_, kept] {
    if (!kept) return broker.release_topic(topic);
    return broker.keep_topic(topic, concat("It keeps the state of the stream ", stream,
                                           ", which runs; stop the stream first."));
  };
  co_return co_await run_on(parts_.environment.control(), std::move(change));
}

Task<> StreamChangelog::remove(Session& session) {
  std::vector<TopicName> topics;
  topics.push_back({topic_, {}});
  auto deleting = parts_.broker.admin().delete_topics(session, std::move(topics), admin_limit);
  MR_CO_TRY(const auto deleted, co_await std::move(deleting));
  auto answer = deleted.at(0);
  if (answer.error == ErrorCode::not_controller) {
    auto ask = [&broker = parts_.broker, topic = topic_] {
      return broker.erase_at_controller(topic);
    };
    MR_CO_TRY(answer, co_await run_on(parts_.environment.control(), std::move(ask)));
  }
  if (answer.error == ErrorCode::none || answer.error == ErrorCode::unknown_topic_or_partition) {
    co_return {};
  }
  co_return Error{Errc::conflict, concat("cannot delete ", topic_, ": ", answer.message)};
}

}  // namespace millrace::kernel
