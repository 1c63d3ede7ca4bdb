// Which APIs are served, in which versions, by which handler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/broker.h>
#include <millrace/kafka/api.h>

#include "handlers/handlers.h"

namespace millrace::kafka_transport {

struct Api {
  const kafka::ApiInfo* info = nullptr;
  kafka::VersionRange served;
  Handler handler = nullptr;
  bool polls = false;  ///< may wait for what others do, so that it ends with its connection
};

/// Made once per listener; what ApiVersions tells is exactly this.  [any thread]
class ApiSet {
 public:
  /// Every API whose services are loaded into `broker`.
  explicit ApiSet(Broker& broker);
  ApiSet(const ApiSet&) = delete;
  ApiSet& operator=(const ApiSet&) = delete;

  /// In ascending order of keys.
  std::span<const Api> all() const noexcept { return apis_; }
  /// The API to serve a request with, or Errc::unsupported. Any version of ApiVersions is taken:
  /// clients learn from its answer which they should have used.
  Result<const Api*> find(std::int16_t key, std::int16_t version) const;

 private:
  std::vector<Api> apis_;
  std::vector<const Api*> by_key_;  // into apis_; nullptr where there is none
};

}  // namespace millrace::kafka_transport
