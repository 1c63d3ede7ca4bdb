// The example's bank accounts against the contract of aggregates.
#include <gtest/gtest.h>

#include <millrace/entity.h>
#include <millrace/testing/aggregate_contract.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {
namespace {

// Its factory, from the shared object.
class Bank final : public AggregateFactory {
 public:
  Bank() {
    auto loaded = load_plugin(MILLRACE_EXAMPLES_DIR "/bank.so", world_.add_node("bank"));
    MR_ASSERT(loaded);
    plugin_.emplace(*std::move(loaded));
  }
  AggregateDeclaration declaration() const override { return factory().declaration(); }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition& partition) override {
    return factory().make(partition);
  }

 private:
  AggregateFactory& factory() const { return *plugin_->registered().aggregates.at(0); }

  SimWorld world_{1};
  mutable std::optional<LoadedPlugin> plugin_;
};

AggregateCommand said(std::string key, std::string text) {
  return {std::move(key), [text = std::move(text)] { return entity_command(text); }};
}

INSTANTIATE_TEST_SUITE_P(
    Examples, AggregateContract,
    ::testing::Values(AggregateCase{
        .name = "bank",
        .make = [] { return std::make_unique<Bank>(); },
        .commands = {said("alice", "deposit 500"), said("bob", "deposit 20"),
                     said("alice", "withdraw 200"), said("bob", "withdraw 21")},
        .question = [] { return std::make_unique<BytesMessage>(Buffer()); },
        .read =
            [](const Message& answer) {
              return std::string(dynamic_cast<const BytesMessage&>(answer).bytes.text());
            }}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace millrace::testing
