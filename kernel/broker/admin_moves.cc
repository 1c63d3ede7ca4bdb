// Leaders elected and replicas moved: by the controller, where this broker is that.
#include <utility>

#include "kernel/broker/admin.h"

namespace millrace::kernel {

namespace {

// What is an error of the whole is told as one.
template <class Answer>
Result<Answer> told(Result<Answer> answer) {
  if (answer) return answer;
  Answer refused;
  refused.error = answer.error().code == Errc::fenced ? ErrorCode::not_controller
                                                      : error_code_of(answer.error());
  refused.message = std::move(answer.error().detail);
  return refused;
}

}  // namespace

Task<ClusterOutcome> KernelAdmin::elect_leaders(Session&, ElectionRequest request) {
  MR_CO_CHECK(co_await partitions_.here().joined());
  auto make = [this, request = std::move(request)] { return controller_.elect_leaders(request); };
  co_return told(co_await run_on(control(), std::move(make)));
}

Task<ClusterOutcome> KernelAdmin::reassign(Session&, ReassignmentRequest request) {
  MR_CO_CHECK(co_await partitions_.here().joined());
  auto make = [this, request = std::move(request)] { return controller_.reassign(request); };
  co_return told(co_await run_on(control(), std::move(make)));
}

Task<ReassignmentsListed> KernelAdmin::list_reassignments(
    Session&, std::optional<std::vector<TopicPartitions>> topics) {
  MR_CO_CHECK(co_await partitions_.here().joined());
  const auto listing =
      [](const Controller& controller,
         std::optional<std::vector<TopicPartitions>> asked) -> Task<ReassignmentsListed> {
    co_return controller.list_reassignments(asked);
  };
  auto make = [this, listing, topics = std::move(topics)] { return listing(controller_, topics); };
  co_return told(co_await run_on(control(), std::move(make)));
}

}  // namespace millrace::kernel
