// wire-vectors FILE.jsonl.gz...: checks our codecs against messages that Kafka's own serializer
// wrote (tests/golden/README.md has the format of a vector). Each vector must decode, print as the
// vector's JSON and encode to the same bytes; every proper prefix of it must be refused.
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json.hpp>
#include <zlib.h>

#include <millrace/kafka/message_info.h>

namespace {

namespace json = boost::json;
using millrace::Buffer;
using millrace::Errc;
using millrace::Error;
using millrace::MutableBuffer;
using millrace::Result;
using millrace::kafka::find_message;
using millrace::kafka::MessageInfo;

struct Vector {
  std::string label;  // "FetchRequest v12 #3"
  const MessageInfo* message = nullptr;
  std::int16_t version = 0;
  Buffer body;
  json::value expected;
};

Buffer parse_hex(std::string_view hex) {
  MutableBuffer bytes(hex.size() / 2);
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    bytes.space()[0] = std::byte(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
    bytes.filled(1);
  }
  return std::move(bytes).freeze();
}

std::string_view text_of(const json::value& value) { return value.as_string(); }

Result<Vector> parse_vector(std::string_view line) {
  const auto parsed = json::parse(line);
  const auto& object = parsed.as_object();
  const auto kind = text_of(object.at("kind"));
  const auto name = std::string(text_of(object.at("api"))) + (kind == "req"    ? "Request"
                                                              : kind == "resp" ? "Response"
                                                                               : "");
  Vector vector;
  vector.message = find_message(name);
  if (!vector.message) return Error{Errc::not_found, "no message " + name};
  vector.version = object.at("version").to_number<std::int16_t>();
  vector.label = name + " v" + std::to_string(vector.version) + " #" +
                 std::to_string(object.at("n").to_number<int>());
  vector.body = parse_hex(text_of(object.at("hex")));
  vector.expected = object.at("json");
  return vector;
}

bool is_integer(const json::value& value) { return value.is_int64() || value.is_uint64(); }

/// "" when equal, else where they differ: "topics[0].name".
std::string difference(const json::value& ours, const json::value& kafkas) {
  if (ours.is_object() && kafkas.is_object()) {
    for (const auto& [name, value] : kafkas.as_object()) {
      const auto* mine = ours.as_object().if_contains(name);
      if (!mine) return std::string(name) + " (missing)";
      if (auto where = difference(*mine, value); !where.empty()) {
        return std::string(name) + (where[0] == '[' || where[0] == ' ' ? "" : ".") + where;
      }
    }
    for (const auto& [name, value] : ours.as_object()) {
      if (!kafkas.as_object().contains(name)) return std::string(name) + " (not Kafka's)";
    }
    return "";
  }
  if (ours.is_array() && kafkas.is_array()) {
    const auto& mine = ours.as_array();
    const auto& theirs = kafkas.as_array();
    if (mine.size() != theirs.size()) return " (sizes)";
    for (std::size_t at = 0; at < mine.size(); ++at) {
      if (auto where = difference(mine[at], theirs[at]); !where.empty()) {
        return "[" + std::to_string(at) + "]." + where;
      }
    }
    return "";
  }
  // Kafka writes 1.0E10 where we write 1e+10, and 3.0 where we write 3.
  if (ours.is_number() && kafkas.is_number() && !(is_integer(ours) && is_integer(kafkas))) {
    return ours.to_number<double>() == kafkas.to_number<double>() ? "" : " (float)";
  }
  return ours == kafkas ? ""
                        : " (" + json::serialize(ours) + ", not " + json::serialize(kafkas) + ")";
}

Result<> check_json(const Vector& vector) {
  MR_TRY(const auto text, vector.message->to_json(vector.body, vector.version));
  const auto where = difference(json::parse(text), vector.expected);
  if (!where.empty()) return Error{Errc::corrupt, "json differs: " + where};
  return {};
}

Result<> check_recoded(const Vector& vector) {
  MR_TRY(const auto payload, vector.message->recode(vector.body, vector.version));
  MR_TRY(const auto bytes, payload.flatten());
  if (!std::ranges::equal(bytes.bytes(), vector.body.bytes())) {
    const auto at =
        std::ranges::mismatch(bytes.bytes(), vector.body.bytes()).in1 - bytes.bytes().begin();
    return Error{Errc::corrupt, "encodes differently from byte " + std::to_string(at)};
  }
  return {};
}

Result<> check_prefixes(const Vector& vector) {
  for (std::size_t size = 0; size < vector.body.size(); ++size) {
    if (vector.message->check(vector.body.slice(0, size), vector.version)) {
      return Error{Errc::corrupt, "accepts the first " + std::to_string(size) + " of " +
                                      std::to_string(vector.body.size()) + " bytes"};
    }
  }
  return {};
}

Result<std::string> check(std::string_view line) {
  MR_TRY(const auto vector, parse_vector(line));
  for (const auto part : {check_json, check_recoded, check_prefixes}) {
    if (const auto result = part(vector); !result) {
      return Error{result.error().code, vector.label + ": " + result.error().detail};
    }
  }
  return vector.label;
}

/// Calls `use` with each line.
bool for_each_line(const char* path, const std::function<void(std::string_view)>& use) {
  auto* file = gzopen(path, "rb");
  if (!file) return false;
  std::string line;
  char chunk[65536];
  while (gzgets(file, chunk, sizeof chunk)) {
    line += chunk;
    if (!line.ends_with('\n')) continue;
    use(line);
    line.clear();
  }
  return gzclose(file) == Z_OK && line.empty();
}

}  // namespace

int main(int argc, char** argv) {
  int passed = 0;
  int failed = 0;
  const auto check_line = [&](std::string_view line) {
    Result<std::string> result;
    try {
      result = check(line);
    } catch (const std::exception& error) {
      result = Error{Errc::corrupt, error.what()};
    }
    ++(result ? passed : failed);
    if (!result) std::printf("%s\n", result.error().detail.c_str());
  };
  for (int at = 1; at < argc; ++at) {
    if (for_each_line(argv[at], check_line)) continue;
    std::printf("%s: cannot be read to its end\n", argv[at]);
    ++failed;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
