#include "kernel/broker/configs.h"

namespace millrace::kernel {

Task<std::vector<ConfigsDescribed>> KernelConfigs::describe(Session&,
                                                            std::vector<ConfigQuery> queries) {
  std::vector<ConfigsDescribed> answers;
  for (auto& query : queries) {
    answers.push_back({.resource = std::move(query.resource),
                       .error = ErrorCode::invalid_request,
                       .message = "not served",
                       .entries = {}});
  }
  co_return std::move(answers);
}

Task<std::vector<ConfigsAltered>> KernelConfigs::alter(Session&, AlterConfigsRequest request) {
  std::vector<ConfigsAltered> answers;
  for (auto& one : request.alterations) {
    answers.push_back({.resource = std::move(one.resource),
                       .error = ErrorCode::invalid_request,
                       .message = "not served"});
  }
  co_return std::move(answers);
}

Task<std::vector<ConfigResource>> KernelConfigs::list(Session&, std::vector<ConfigResourceType>) {
  co_return std::vector<ConfigResource>();
}

}  // namespace millrace::kernel
