#include "config_fixture.h"

namespace millrace::kernel {
namespace {

std::vector<OptionTable> all_tables() {
  auto tables = kernel_options();
  tables.push_back({"transport.kafka", kafka_options});
  tables.push_back({"defaults", kafka_defaults});
  return tables;
}

TEST(ExplainTest, SaysWhatAnOptionTakes) {
  EXPECT_EQ(explain(all_tables(), "broker.memory"),
            "broker.memory: Memory for requests in flight; beyond it connections are not read "
            "from.\n"
            "  value:   an integer from 1048576 to 1099511627776 (bytes)\n"
            "  default: 268435456\n");
  EXPECT_EQ(explain(all_tables(), "transport.kafka.strict"),
            "transport.kafka.strict: Refuses more.\n"
            "  value:   true or false\n"
            "  default: false\n"
            "  notes:   reloadable\n");
  EXPECT_EQ(explain(all_tables(), "defaults.\"retention.ms\""),
            "defaults.\"retention.ms\": Retention.\n"
            "  value:   an integer not below -1 (ms)\n"
            "  default: none\n");
}

TEST(ExplainTest, UnknownKeyNamesTheNearest) {
  const auto found = explain(all_tables(), "broker.memroy");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::not_found);
  EXPECT_EQ(found.error().detail, "no option broker.memroy; nearest known: broker.memory");
}

TEST(ExplainTest, DescribesEveryOptionOfEveryTable) {
  const auto text = describe(all_tables());
  for (const auto& table : all_tables()) {
    EXPECT_THAT(text, testing::HasSubstr('[' + table.table + "]\n"));
    for (const auto* option = table.options; option->name != nullptr; ++option) {
      EXPECT_THAT(text, testing::HasSubstr(option->help)) << table.table << '.' << option->name;
    }
  }
}

}  // namespace
}  // namespace millrace::kernel
