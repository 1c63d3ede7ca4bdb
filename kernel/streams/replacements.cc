#include "kernel/streams/replacements.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cluster/znodes.h"
#include "kernel/config/text.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

namespace json = boost::json;

constexpr std::string_view wanted_prefix = "/millrace/replacements";
constexpr std::string_view wanted_key = "/millrace/replacements/wanted";
constexpr std::string_view answers_prefix = "/millrace/replaced";

// Longer than what a broker may need to load a file, and to let what runs come to a stop.
constexpr Duration answer_limit = std::chrono::seconds(90);
constexpr std::size_t reason_bytes_max = 4096;
constexpr Duration look_interval = std::chrono::seconds(1);
constexpr Duration again_after = std::chrono::seconds(1);
const Duration read_limit = std::chrono::seconds(30);

std::string answer_key(std::int32_t broker) { return concat(answers_prefix, "/", broker); }

/// "" where there is none.
std::string text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

Result<json::object> read_object(std::string_view key, std::string_view text) {
  boost::system::error_code failed;
  auto value = json::parse(text, failed);
  if (!failed && value.is_object()) return std::move(value.get_object());
  return Error{Errc::corrupt, concat(key, " is malformed: ", text)};
}

}  // namespace

std::string ReplacementService::encode(const Wanted& wanted) {
  json::object object{{"version", 1}, {"broker", wanted.broker}};
  if (!wanted.id.empty()) {
    const auto& [name, step, file] = wanted.replacement;
    object["id"] = wanted.id;
    object["name"] = name;
    if (step) object["step"] = *step;
    object["file"] = file;
    object["content"] = wanted.content;
  }
  return json::serialize(object);
}

Result<ReplacementService::Wanted> ReplacementService::decode_wanted(std::string_view text) {
  MR_TRY(const auto object, read_object(wanted_key, text));
  Wanted wanted;
  const auto* broker = object.if_contains("broker");
  if (broker && broker->is_int64()) wanted.broker = static_cast<std::int32_t>(broker->get_int64());
  wanted.id = text_of(object, "id");
  wanted.replacement.name = text_of(object, "name");
  if (object.contains("step")) wanted.replacement.step = text_of(object, "step");
  wanted.replacement.file = text_of(object, "file");
  wanted.content = text_of(object, "content");
  return wanted;
}

std::string ReplacementService::encode(const Answer& answer) {
  return json::serialize(
      json::object{{"version", 1}, {"id", answer.id}, {"refused", answer.refused}});
}

Result<ReplacementService::Answer> ReplacementService::decode_answer(std::string_view text) {
  MR_TRY(const auto object, read_object(answers_prefix, text));
  return Answer{text_of(object, "id"), text_of(object, "refused")};
}

ReplacementService::ReplacementService(Environment& environment, Coordination& coordination,
                                       LogSink& log, std::int32_t broker, LocalReplacements local)
    : environment_(environment),
      coordination_(coordination),
      log_(log, "replacements"),
      broker_(broker),
      local_(std::move(local)) {}

void ReplacementService::open() {
  spawn(environment_.control(), follow(), "replacements", &scope_);
}

Task<> ReplacementService::close() {
  scope_.cancel();
  co_return co_await running_.close();
}

// ---- the broker that is asked ----

Task<std::vector<ReplacedAt>> ReplacementService::replace_operator(std::string stream,
                                                                   std::string step,
                                                                   std::string file) {
  auto make = [this, all = Replacement{std::move(stream), std::move(step), std::move(file)}] {
    return replace_everywhere(all);
  };
  co_return co_await run_on(environment_.control(), std::move(make));
}

Task<std::vector<ReplacedAt>> ReplacementService::replace_aggregate(std::string aggregate,
                                                                    std::string file) {
  auto make = [this, all = Replacement{std::move(aggregate), std::nullopt, std::move(file)}] {
    return replace_everywhere(all);
  };
  co_return co_await run_on(environment_.control(), std::move(make));
}

Task<std::vector<ReplacedAt>> ReplacementService::replace_everywhere(Replacement replacement) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(const auto turn, co_await asking_.lock());
  auto replacing = replace_in_turn(std::move(replacement)).within(scope_);
  co_return co_await std::move(replacing);
}

Task<std::vector<ReplacedAt>> ReplacementService::replace_in_turn(Replacement replacement) {
  MR_CO_TRY(auto others, co_await brokers());
  others.erase(broker_);
  const bool alone = others.empty();
  if (!alone) MR_CO_CHECK(co_await claim());
  auto replacing = replace_from_here(std::move(replacement), std::move(others));
  auto told = co_await std::move(replacing);
  if (!alone) MR_CO_CHECK(co_await withdraw());
  co_return std::move(told);
}

Task<std::vector<ReplacedAt>> ReplacementService::replace_from_here(Replacement replacement,
                                                                    Brokers others) {
  auto here = replace_here(replacement);
  auto replaced = co_await std::move(here);
  if (!replaced) {
    auto [code, detail] = std::move(replaced).error();
    if (!others.empty()) detail += "; other brokers were not asked";
    co_return Error{code, std::move(detail)};
  }
  std::vector<ReplacedAt> told{{broker_, {}}};
  Result<> asked;
  if (!others.empty()) {
    auto asking = ask(replacement, others, told);
    asked = co_await std::move(asking);
  }
  for (const auto broker : others) {
    told.push_back({broker, asked ? concat("it has not answered within ",
                                           answer_limit / std::chrono::seconds(1), " s")
                                  : concat("it could not be asked: ", asked.error().detail)});
  }
  for (const auto& [broker, refused] : told) {
    if (refused.empty()) continue;
    log_.warning("what was replaced here was not at another broker",
                 {{"broker", broker}, {"reason", refused}});
  }
  std::ranges::sort(told, {}, &ReplacedAt::broker);
  const bool everywhere = std::ranges::all_of(told, &std::string::empty, &ReplacedAt::refused);
  if (everywhere && replacement.step) MR_CO_CHECK(co_await local_.remember(replacement.name));
  co_return std::move(told);
}

// Those who have answered, or are gone, wait no more; what they said is told.
Task<> ReplacementService::ask(Replacement replacement, Brokers& waiting,
                               std::vector<ReplacedAt>& told) {
  auto reading = content_of(replacement.file);
  MR_CO_TRY(auto content, co_await std::move(reading));
  const auto id = to_string(environment_.random().uuid());
  // Fails where it is not ours any more.
  MR_CO_CHECK(co_await put(
      wanted_key, encode(Wanted{broker_, id, std::move(replacement), std::move(content)}), 0));
  const auto until = environment_.control().now() + answer_limit;
  Seen seen;
  while (!waiting.empty() && environment_.control().now() < until) {
    auto looking =
        with_deadline(coordination_.next_change(std::string(answers_prefix), seen), look_interval);
    const auto changed = co_await std::move(looking);
    if (changed) seen = *changed;
    if (!changed && changed.error().code != Errc::timed_out) co_return changed.error();
    MR_CO_CHECK(co_await hear(id, waiting, told));
  }
  co_return {};
}

Task<> ReplacementService::hear(std::string id, Brokers& waiting, std::vector<ReplacedAt>& told) {
  MR_CO_TRY(const auto alive, co_await brokers());
  for (const auto broker : Brokers(waiting)) {
    const auto found = co_await coordination_.get(answer_key(broker));
    if (!found && found.error().code != Errc::not_found) co_return found.error();
    const auto answer = found ? decode_answer(found->value) : Answer();
    if (answer && answer->id == id) {
      told.push_back({broker, answer->refused});
    } else if (!alive.contains(broker)) {
      told.push_back({broker, "it is not in the cluster any more"});
    } else {
      continue;
    }
    waiting.erase(broker);
  }
  co_return {};
}

// One broker asks at a time.
Task<> ReplacementService::claim() {
  const auto claimed = co_await put(wanted_key, encode(Wanted{.broker = broker_}), must_not_exist);
  if (claimed || claimed.error().code != Errc::conflict) co_return claimed;
  const auto found = co_await coordination_.get(std::string(wanted_key));
  const auto other = found ? decode_wanted(found->value) : Wanted();
  co_return Error{Errc::conflict,
                  concat("broker ", other ? other->broker : -1,
                         " is asked to replace something just now; try again when it has")};
}

// It goes with our session at the latest.
Task<> ReplacementService::withdraw() {
  while (true) {
    std::vector<Write> writes;
    writes.push_back({.key = std::string(wanted_key)});
    const auto done = co_await coordination_.commit(std::move(writes));
    if (done || done.error().code == Errc::not_found || done.error().code == Errc::fenced) break;
    MR_CO_CHECK(co_await sleep(again_after));
  }
  co_return {};
}

// ---- the others ----

Task<> ReplacementService::follow() {
  MR_CO_TRY(const auto pass, running_.enter());
  Seen seen;
  while (true) {
    const auto changed = co_await coordination_.next_change(std::string(wanted_prefix), seen);
    if (changed) {
      const auto answered = co_await answer();
      seen = answered ? *changed : Seen{};
      if (answered) continue;
    }
    if (!changed && changed.error().code == Errc::closed) co_return {};
    MR_CO_CHECK(co_await sleep(again_after));
  }
}

Task<> ReplacementService::answer() {
  const auto found = co_await coordination_.get(std::string(wanted_key));
  if (!found && found.error().code == Errc::not_found) co_return {};
  if (!found) co_return found.error();
  auto wanted = decode_wanted(found->value);
  if (!wanted || wanted->broker == broker_ || wanted->id.empty()) co_return {};
  if (answered_.id != wanted->id) {
    answered_ = {wanted->id, {}};
    auto doing = do_as_asked(*std::move(wanted));
    const auto done = co_await std::move(doing);
    if (!done) answered_.refused = shown(done.error().detail, reason_bytes_max);
  }
  co_return co_await put(answer_key(broker_), encode(answered_), any_version);
}

Task<> ReplacementService::do_as_asked(Wanted wanted) {
  const auto& file = wanted.replacement.file;
  auto reading = content_of(file);
  MR_CO_TRY(const auto content, co_await std::move(reading));
  if (content != wanted.content) {
    co_return Error{Errc::invalid_argument,
                    concat(file, ": it is another file than that of broker ", wanted.broker)};
  }
  auto replacing = replace_here(wanted.replacement);
  co_return co_await std::move(replacing);
}

// ---- each of them ----

// To its end, also when we close.
Task<> ReplacementService::replace_here(Replacement replacement) {
  CancelScope whole;
  auto replacing = local_.replace(replacement).within(whole);
  co_return co_await std::move(replacing);
}

Task<std::string> ReplacementService::content_of(std::string file) {
  auto work = [content = local_.content, file = std::move(file)] { return content(file); };
  auto reading = run_watched(environment_, read_limit, std::move(work));
  co_return co_await std::move(reading);
}

Task<ReplacementService::Brokers> ReplacementService::brokers() {
  MR_CO_TRY(const auto names, co_await coordination_.list(std::string(znodes::broker_ids)));
  Brokers ids;
  for (const auto& name : names) {
    std::int32_t id = -1;
    std::from_chars(name.data(), name.data() + name.size(), id);
    if (id >= 0) ids.insert(id);
  }
  co_return std::move(ids);
}

Task<> ReplacementService::put(std::string_view key, std::string value, Version expected) {
  std::vector<Write> writes;
  writes.push_back({.key = std::string(key),
                    .value = std::move(value),
                    .expected = expected,
                    .ephemeral = true});
  const auto done = co_await coordination_.commit(std::move(writes));
  if (!done) co_return done.error();
  co_return {};
}

}  // namespace millrace::kernel
