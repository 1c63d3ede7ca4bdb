// How the rest of a broker talks to aggregates (<millrace/aggregate.h>), wherever their partition
// is; and how a plugin offers a service that is built on them. For plugins of kind `operators` that
// are more than operators, and for transports; built with the kernel's toolchain.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/broker.h>

namespace millrace {

/// NOT_COORDINATOR: the partition is led elsewhere, or was lost meanwhile.
/// COORDINATOR_LOAD_IN_PROGRESS: being replayed. COORDINATOR_NOT_AVAILABLE: it cannot be loaded, or
/// its log takes no append.
struct AggregateAnswer {
  ErrorCode error = ErrorCode::none;
  std::string detail;
  std::unique_ptr<Message> message;  ///< none where there is an error
};

/// Who has the aggregate of a key.
struct AggregateHome {
  ErrorCode error = ErrorCode::none;
  std::string detail;
  std::int32_t broker = -1;
};

/// Broker::service<Aggregates>(). Implemented by the kernel. A failed Pending or Task means that
/// the broker is stopping.  [the caller's shard]
class Aggregates {
 public:
  static constexpr std::string_view service_id = "millrace.aggregates/1";

  virtual ~Aggregates() = default;
  /// `dispatched` once the command has its place behind those before it.
  virtual Call<AggregateAnswer> command(std::string_view aggregate, std::string_view key,
                                        std::unique_ptr<Message> body) = 0;
  virtual Task<AggregateAnswer> query(std::string_view aggregate, std::string_view key,
                                      std::unique_ptr<Message> question) = 0;
  /// Of every partition that this broker leads; those being loaded answer with their error. `make`
  /// is called on any shard.
  virtual Task<std::vector<AggregateAnswer>> query_all(
      std::string_view aggregate, std::function<std::unique_ptr<Message>()> make) = 0;
  /// Makes the aggregate's topic when there is none yet.
  virtual Task<AggregateHome> home(std::string_view aggregate, std::string_view key) = 0;
};

/// What Plugin::extension(service_provider_id) answers, of a plugin that offers a service to
/// transports: Broker::service(id) finds it here.
class ServiceProvider {
 public:
  virtual ~ServiceProvider() = default;
  /// Once, when the broker serves its plugins and no transport listens yet. `broker` outlives what
  /// the plugin offers.  [control thread]
  virtual Result<> connect(Broker& broker) = 0;
  /// nullptr for what it does not offer.  [any thread]
  virtual void* service(std::string_view id) noexcept = 0;
};
inline constexpr std::string_view service_provider_id = "millrace.service_provider/1";

}  // namespace millrace
