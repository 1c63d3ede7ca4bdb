#include "fakes.h"

namespace millrace::http_transport::testing {

AggregateAnswer FakeAggregates::answer(std::string text) const {
  if (error != ErrorCode::none) return {error, "refused", nullptr};
  class Own final : public Message {};
  if (own_types) return {ErrorCode::none, {}, std::make_unique<Own>()};
  return {ErrorCode::none, {}, std::make_unique<BytesMessage>(Buffer::copy_of(text))};
}

Call<AggregateAnswer> FakeAggregates::command(std::string_view aggregate, std::string_view key,
                                              std::unique_ptr<Message> body) {
  const auto& said = dynamic_cast<const BytesMessage&>(*body);
  const auto* version = said.find("millrace-expected-version");
  auto told =
      answer(std::string(aggregate) + " " + std::string(key) + " " +
             std::string(said.bytes.text()) + " v" + std::string(version ? version->text() : ""));
  if (auto* message = dynamic_cast<BytesMessage*>(told.message.get())) {
    message->headers.emplace_back("millrace-version", Buffer::copy_of("4"));
  }
  return {Pending<>::ready({}), Pending<AggregateAnswer>::ready(std::move(told))};
}

Task<AggregateAnswer> FakeAggregates::query(std::string_view aggregate, std::string_view key,
                                            std::unique_ptr<Message> /*question*/) {
  auto told = answer(std::string(aggregate) + " " + std::string(key));
  co_return told;
}

}  // namespace millrace::http_transport::testing
