// Changes of topics: each is made on the control thread, answers stand in the request's order.
#include "kernel/broker/admin.h"

namespace millrace::kernel {

Task<std::vector<TopicCreated>> KernelAdmin::create_topics(Session&, CreateTopicsRequest request) {
  std::vector<TopicCreated> answers;
  for (auto& wanted : request.topics) {
    const auto name = wanted.name;
    auto make = [this, wanted = std::move(wanted), only = request.validate_only] {
      return topics_.create(wanted, only);
    };
    auto created = co_await run_on(control(), std::move(make));
    if (!created) {
      created = TopicCreated{.name = name,
                             .error = error_code_of(created.error()),
                             .message = created.error().detail,
                             .configs = {}};
    }
    answers.push_back(*std::move(created));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicDeleted>> KernelAdmin::delete_topics(Session&, std::vector<TopicName> topics,
                                                           Duration) {
  std::vector<TopicDeleted> answers;
  for (const auto& name : topics) {
    auto make = [this, name] { return topics_.erase(name); };
    auto deleted = co_await run_on(control(), std::move(make));
    if (!deleted) {
      deleted = TopicDeleted{.topic = name,
                             .error = error_code_of(deleted.error()),
                             .message = deleted.error().detail};
    }
    answers.push_back(*std::move(deleted));
  }
  co_return std::move(answers);
}

}  // namespace millrace::kernel
