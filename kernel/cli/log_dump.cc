// millrace log dump: what stands in the files of a partition.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/bytes.h>
#include <millrace/filelog/index.h>
#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>
#include <millrace/kafka/message_info.h>
#include <millrace/utf8.h>

#include "kernel/cli/log_dump_records.h"
#include "kernel/cli/log_verbs.h"
#include "kernel/cli/log_walk.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;
using filelog::say;

struct Arguments {
  std::vector<std::string> paths;
  bool all = false;
  bool records = false;
  bool decode = false;
  std::int64_t from = 0;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

json::value offset_of(Offset offset) {
  return offset.value < 0 ? json::value(nullptr) : json::value(offset.value);
}

std::string folder_name(const std::string& path) {
  return std::filesystem::absolute(path).parent_path().filename().string();
}

// Of an old message the attributes are behind what the head has.
Result<CompressionId> codec_of(const File& file, const SoundBatch& batch) {
  constexpr std::uint64_t attributes_at = 17;
  constexpr unsigned codec_bits = 7;
  if (batch.header) return batch.header->compression();
  std::byte attributes{};
  MR_TRY(const auto read,
         file.read_at(batch.entry.position + attributes_at, MutableBytes(&attributes, 1)));
  if (read != 1) return Error{Errc::io, file.path() + ": ends within a batch"};
  return static_cast<CompressionId>(std::to_integer<unsigned>(attributes) & codec_bits);
}

// The fields by their names in JSON; as text they stand in a line in this order.
json::object describe(const SoundBatch& batch, CompressionId codec) {
  const auto& entry = batch.entry;
  json::object out{{"base_offset", entry.base.value},
                   {"last_offset", entry.last.value},
                   {"position", entry.position},
                   {"size", entry.bytes},
                   {"magic", entry.magic},
                   {"codec", name_of(codec)},
                   {"max_timestamp", entry.max_timestamp.ms}};
  if (!batch.header) {
    if (codec == CompressionId::none) out["count"] = 1;
    out["crc_ok"] = true;
    return out;
  }
  const auto& header = *batch.header;
  out["base_timestamp"] = header.base_timestamp.ms;
  out["timestamp_type"] = header.log_append_time() ? "log_append" : "create";
  out["count"] = header.record_count;
  out["producer_id"] = header.producer_id;
  out["producer_epoch"] = header.producer_epoch;
  out["base_sequence"] = header.base_sequence;
  out["leader_epoch"] = header.partition_leader_epoch.value;
  out["transactional"] = header.transactional();
  out["control"] = header.control();
  out["crc"] = header.crc;
  out["crc_ok"] = true;
  return out;
}

json::object describe(const BadRegion& region) {
  return {{"position", region.position},
          {"size", region.bytes()},
          {"from_offset", offset_of(region.from)},
          {"to_offset", offset_of(region.to)},
          {"torn", region.torn},
          {"what", region.what}};
}

class Dump {
 public:
  Dump(Environment& environment, const Context& context, const Arguments& arguments)
      : environment_(environment),
        files_(environment.files()),
        context_(context),
        json_(context.output == OutputFormat::json),
        arguments_(arguments) {}

  Result<> run() {
    std::optional<LoadedCodecs> loaded;
    if (arguments_.records) {
      MR_TRY(loaded, LoadedCodecs::load(context_, environment_));
      codecs_ = loaded->codecs();
    }
    for (const auto& path : arguments_.paths) {
      MR_TRY(const auto info, files_.info(path));
      MR_CHECK(info.is_folder ? dump_folder(path) : dump_file(path));
    }
    std::cout.flush();
    if (bad_ == 0) return {};
    return Error{Errc::corrupt, say(bad_, " regions are no batches; see above")};
  }

 private:
  Result<> dump_folder(const std::string& path) {
    MR_TRY(const auto listing, files_.list(path));
    std::size_t dumped = 0;
    for (const auto& file : listing) {
      const auto name = filelog::parse_offset_name(file.name);
      const bool log = name && name->suffix == filelog::log_suffix;
      if (file.is_folder || !(log || (arguments_.all && is_known(file.name)))) continue;
      ++dumped;
      MR_CHECK(dump_file(path + "/" + file.name));
    }
    if (dumped > 0) return {};
    return Error{Errc::invalid_argument,
                 shown(path) +
                     " holds no segment; expected a partition's folder, with files such "
                     "as 00000000000000000000.log"};
  }

  static bool is_text(std::string_view name) {
    return name == filelog::leader_epochs_file || name == filelog::metadata_file ||
           name == filelog::owner_file || name.ends_with("-checkpoint");
  }
  static bool is_known(std::string_view name) {
    if (is_text(name)) return true;
    const auto parsed = filelog::parse_offset_name(name);
    if (!parsed) return false;
    const auto suffix = parsed->suffix;
    return suffix == filelog::log_suffix || suffix == filelog::offset_index_suffix ||
           suffix == filelog::time_index_suffix || suffix == filelog::aborted_suffix ||
           suffix == filelog::producer_suffix;
  }

  Result<> dump_file(const std::string& path) {
    const auto file_name = std::filesystem::path(path).filename().string();
    if (!is_known(file_name)) {
      return Error{Errc::invalid_argument,
                   shown(path) +
                       ": expected a file of a partition: N.log, N.index, N.timeindex, "
                       "N.txnindex, N.snapshot with N of 20 digits, "
                       "leader-epoch-checkpoint, partition.metadata"};
    }
    if (!json_) std::cout << shown(path, 1024) << '\n';
    const auto name = filelog::parse_offset_name(file_name);
    if (name && name->suffix == filelog::log_suffix) return dump_log(path, name->offset);
    MR_TRY(const auto content, read_file(files_, path));
    if (!name) return dump_text(path, content);
    if (name->suffix == filelog::offset_index_suffix)
      return dump_index(path, name->offset, content);
    if (name->suffix == filelog::time_index_suffix) return dump_times(path, name->offset, content);
    if (name->suffix == filelog::aborted_suffix) return dump_aborted(path, content);
    return dump_message(path, "ProducerSnapshot", content);
  }

  // ---- a log ----

  Result<> dump_log(const std::string& path, Offset base) {
    const auto partition = partition_of(path);
    if (arguments_.decode && !can_decode(partition.topic)) {
      return Error{Errc::invalid_argument, "--decode: " + shown(path) +
                                               " is in no folder of __consumer_offsets, "
                                               "__transaction_state or __share_group_state"};
    }
    MR_TRY(const auto file, files_.open(path, OpenMode::read));
    MR_TRY(const auto bytes, file->size());
    SegmentWalker walker(*file, bytes, base, {});
    while (true) {
      MR_TRY(const auto item, walker.next());
      if (!item) return {};
      if (const auto* region = std::get_if<BadRegion>(&*item)) {
        ++bad_;
        print("damaged", path, describe(*region));
        continue;
      }
      const auto& batch = std::get<SoundBatch>(*item);
      if (batch.entry.last.value < arguments_.from) continue;
      if (batch.entry.base.value > arguments_.to) continue;
      MR_CHECK(dump_batch(*file, batch, partition));
    }
  }

  Result<> dump_batch(const File& file, const SoundBatch& batch, const TopicPartition& partition) {
    MR_TRY(const auto codec, codec_of(file, batch));
    print("batch", file.path(), describe(batch, codec));
    if (!arguments_.records) return {};
    const auto each = [&](Offset offset, json::object record) {
      if (offset.value < arguments_.from || offset.value > arguments_.to) return;
      print("record", file.path(), std::move(record));
    };
    auto described = describe_records(file, batch, codecs_, partition, arguments_.decode, each);
    if (described || described.error().code != Errc::corrupt) return described;
    ++bad_;
    print("damaged", file.path(),
          {{"position", batch.entry.position},
           {"size", batch.entry.bytes},
           {"from_offset", batch.entry.base.value},
           {"to_offset", batch.entry.last.value},
           {"torn", false},
           {"what", "the checksum is right, the records are not: " + described.error().detail}});
    return {};
  }

  // A folder that is called otherwise may have been copied.
  static TopicPartition partition_of(const std::string& path) {
    auto name = folder_name(path);
    auto partition = filelog::parse_partition_folder(name);
    return partition ? *std::move(partition) : TopicPartition{std::move(name), -1};
  }

  // ---- files beside it ----

  Result<> dump_index(const std::string& path, Offset base, const Buffer& content) {
    const auto index = filelog::OffsetIndex::parse(content, UINT64_MAX);
    if (!index) return bad_file(path);
    for (const auto row : index->rows()) {
      print("index", path, {{"offset", base.value + row.offset}, {"position", row.position}});
    }
    return {};
  }

  Result<> dump_times(const std::string& path, Offset base, const Buffer& content) {
    const auto index = filelog::TimeIndex::parse(content);
    if (!index) return bad_file(path);
    for (const auto row : index->rows()) {
      print("time_index", path,
            {{"timestamp", row.timestamp}, {"offset", base.value + row.offset}});
    }
    return {};
  }

  Result<> dump_aborted(const std::string& path, const Buffer& content) {
    constexpr std::size_t row_bytes = 34;
    for (std::size_t at = 0; at < content.size(); at += row_bytes) {
      const auto bytes = std::min(row_bytes, content.size() - at);
      MR_CHECK(dump_message(path, "AbortedTxn", content.slice(at, bytes)));
    }
    return {};
  }

  // Kafka's own messages, behind their version.
  Result<> dump_message(const std::string& path, std::string_view name, const Buffer& content) {
    constexpr std::size_t version_bytes = sizeof(std::int16_t);
    const auto* message = kafka::find_message(name);
    if (content.size() < version_bytes || message == nullptr) return bad_file(path);
    const auto version = load_be<std::int16_t>(content.bytes().data());
    auto body = content.slice(version_bytes, content.size() - version_bytes);
    const auto text = message->to_json(std::move(body), version);
    if (!text) return Error{text.error().code, shown(path) + ": " + text.error().detail};
    boost::system::error_code error;
    const auto value = json::parse(*text, error);
    if (error) return bad_file(path);
    print(name == "AbortedTxn" ? "aborted_transaction" : "producer_snapshot", path,
          {{"fields", value}});
    return {};
  }

  Result<> dump_text(const std::string& path, const Buffer& content) {
    if (json_) {
      print("text", path, {{"text", utf8_of(std::string(content.text()))}});
      return {};
    }
    for (auto rest = content.text(); !rest.empty();) {
      const auto end = std::min(rest.find('\n'), rest.size());
      std::cout << "  " << shown(rest.substr(0, end), 4096) << '\n';
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
  }

  static Result<> bad_file(const std::string& path) {
    return Error{Errc::corrupt, shown(path) + ": its rows do not rise, or it ends within one"};
  }

  void print(std::string_view kind, const std::string& path, json::object fields) const {
    if (json_) {
      json::object out{{"kind", kind}, {"file", path}};
      for (auto& [name, value] : fields) out[name] = std::move(value);
      print_json(out);
      return;
    }
    // Names come from messages and may be anything: one line each, whatever they hold.
    std::string line = kind == "record" ? "    " : "  ";
    line += kind;
    for (const auto& [name, value] : fields) {
      if (name == "topic" || name == "partition") continue;  // the file says so
      line += ' ';
      line += name;
      line += '=';
      line += shown(json::serialize(value), 1024);
    }
    std::cout << line << '\n';
  }

  Environment& environment_;
  FileSystem& files_;
  const Context& context_;
  const bool json_;
  const Arguments& arguments_;
  Codecs codecs_;
  std::size_t bad_ = 0;
};

Task<> dump(Environment& environment, const Context& context, const Arguments& arguments) {
  co_return Dump(environment, context, arguments).run();
}

}  // namespace

void add_log_dump_verb(CLI::App& log, Context& context, Action& action) {
  auto* verb = log.add_subcommand(
      "dump",
      "print what stands in the files of a partition: batches, with --records their records; what "
      "is damaged is told, and what is behind it printed. A broker may run");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("PATH", wanted->paths, "a partition's folder, or files in it")
      ->required()
      ->check(not_empty);
  verb->add_flag("--records", wanted->records, "the records too, decompressed");
  verb->add_flag("--decode", wanted->decode,
                 "what the records of __consumer_offsets and of Kafka's other topics say")
      ->needs("--records");
  verb->add_flag("--all", wanted->all, "of a folder the indexes and the files beside them too");
  verb->add_option("--from", wanted->from, "the first offset")
      ->type_name("OFFSET")
      ->check(whole_number(std::int64_t{0}));
  verb->add_option("--to", wanted->to, "the last offset")
      ->type_name("OFFSET")
      ->check(whole_number(std::int64_t{0}));
  add_examples(
      *verb,
      {"millrace log dump /var/lib/millrace/data/orders-0 --from 100 --to 200 --records",
       "millrace log dump /var/lib/millrace/data/orders-0/00000000000000000000.timeindex",
       "millrace -o json log dump /var/lib/millrace/data/__consumer_offsets-0 --records --decode"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return dump(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
