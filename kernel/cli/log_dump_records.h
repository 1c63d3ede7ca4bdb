// The records of a batch in a log file, as text or as JSON.
#pragma once

#include <functional>
#include <string>

#include <boost/json/object.hpp>

#include <millrace/codec.h>
#include <millrace/environment.h>

#include "kernel/cli/log_walk.h"

namespace millrace::kernel::cli {

/// Called for each, in order.
using EachRecord = std::function<void(Offset offset, boost::json::object record)>;

/// Opens `batch` of `partition`, of any format, and describes its records as object_of() does, with
/// "control" where one is a transaction's marker. With `decode` what the keys and values of Kafka's
/// own topics say stands in "decoded". Errc::unsupported when a codec is missing.
/// [blocks on the disk]
Result<> describe_records(const File& file, const SoundBatch& batch, const Codecs& codecs,
                          const TopicPartition& partition, bool decode, const EachRecord& each);

/// Whether records of that topic can be decoded.
bool can_decode(std::string_view topic) noexcept;

}  // namespace millrace::kernel::cli
