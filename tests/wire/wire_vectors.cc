// wire-vectors FILE.jsonl.gz...: checks our codecs against messages that Kafka's own serializer
// wrote (tests/golden/README.md has the format of a vector). Each vector must decode, print as the
// vector's JSON and encode to the same bytes; every proper prefix of it must be refused, and
// damaged lengths must not be believed.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include <millrace/bytes.h>
#include <millrace/kafka/message_info.h>

#include "golden_file.h"
#include "json_difference.h"

namespace {

namespace json = boost::json;
using millrace::Buffer;
using millrace::Errc;
using millrace::Error;
using millrace::MutableBuffer;
using millrace::Result;
using millrace::kafka::find_message;
using millrace::kafka::MessageInfo;
using millrace::wire::difference;
using millrace::wire::parse_hex;

struct Vector {
  std::string label;  // "FetchRequest v12 #3"
  const MessageInfo* message = nullptr;
  std::int16_t version = 0;
  Buffer body;
  json::value expected;
};

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
  MR_TRY(vector.body, parse_hex(text_of(object.at("hex"))));
  vector.expected = object.at("json");
  return vector;
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

/// Whatever is accepted of bytes that Kafka never wrote must make a message that can be written and
/// read again; most of it is to be refused, above all a length that is not there.
Result<> check_damaged(const Vector& vector) {
  constexpr std::size_t places_max = 48;
  constexpr std::uint32_t lengths[] = {0xfffffffe, 0x7fffffff, 0x80000000};
  const auto size = vector.body.size();
  if (size < sizeof(std::uint32_t)) return {};
  const auto step = std::max<std::size_t>(1, size / places_max);
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= size; at += step) {
    for (const auto length : lengths) {
      MutableBuffer damaged(size);
      damaged.append(vector.body);
      millrace::store_be(damaged.data() + at, length);
      const auto body = std::move(damaged).freeze();
      if (!vector.message->check(body, vector.version)) continue;
      const auto where = ", damaged at byte " + std::to_string(at);
      const auto once = vector.message->recode(body, vector.version);
      if (!once) return Error{Errc::corrupt, once.error().detail + where};
      MR_TRY(const auto bytes, once->flatten());
      const auto twice = vector.message->recode(bytes, vector.version);
      if (!twice) return Error{Errc::corrupt, twice.error().detail + where};
      MR_TRY(const auto again, twice->flatten());
      if (again.text() != bytes.text()) return Error{Errc::corrupt, "is not stable" + where};
    }
  }
  return {};
}

Result<> check(std::string_view line) {
  MR_TRY(const auto vector, parse_vector(line));
  for (const auto part : {check_json, check_recoded, check_prefixes, check_damaged}) {
    if (const auto result = part(vector); !result) {
      return Error{result.error().code, vector.label + ": " + result.error().detail};
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: wire-vectors FILE.jsonl.gz...\n");
    return 64;
  }
  int passed = 0;
  int failed = 0;
  for (int at = 1; at < argc; ++at) {
    int number = 0;
    const auto read = millrace::wire::for_each_line(argv[at], [&](std::string_view line) {
      ++number;
      Result<> result;
      try {
        result = check(line);
      } catch (const std::exception& error) {
        result = Error{Errc::corrupt, error.what()};
      }
      ++(result ? passed : failed);
      if (!result) std::printf("%s line %d: %s\n", argv[at], number, result.error().detail.c_str());
    });
    if (read && number > 0) continue;
    std::printf("%s: %s\n", argv[at], read ? "no vectors in it" : read.error().detail.c_str());
    ++failed;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
