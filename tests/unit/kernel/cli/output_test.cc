#include "kernel/cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

Terminal wide(std::size_t columns) { return {.columns = columns, .colours = false}; }

Table topics() {
  Table table({"TOPIC", "PARTITIONS", "REPLICAS"});
  table.add({"orders", "3", "1"});
  table.add({"注文-😀", "12", "1"});
  return table;
}

constexpr std::string_view topics_in_columns =
    "TOPIC    PARTITIONS  REPLICAS\n"
    "orders   3           1\n"
    "注文-😀  12          1\n";

TEST(TableTest, ColumnsLineUpByWhatTheirTextsTakeOnATerminal) {
  EXPECT_EQ(topics().text({}), topics_in_columns);
  EXPECT_EQ(topics().text(wide(29)), topics_in_columns);
}

TEST(TableTest, WhereTheColumnsAreTooWideEachRowIsABlock) {
  EXPECT_EQ(topics().text(wide(28)),
            "TOPIC       orders\n"
            "PARTITIONS  3\n"
            "REPLICAS    1\n"
            "\n"
            "TOPIC       注文-😀\n"
            "PARTITIONS  12\n"
            "REPLICAS    1\n");
}

TEST(TableTest, ALastColumnOfProseIsWrapped) {
  Table table({"OPTION", "MEANING"});
  table.add({"listen", "where it listens for what clients ask"});
  EXPECT_EQ(table.text(wide(30)),
            "OPTION  MEANING\n"
            "listen  where it listens for\n"
            "        what clients ask\n");
  // There is no room to read it in.
  EXPECT_EQ(table.text(wide(20)),
            "OPTION   listen\n"
            "MEANING  where it\n"
            "         listens for\n"
            "         what\n"
            "         clients ask\n");
}

TEST(TableTest, ABlockLeavesOutWhatIsEmpty) {
  Table table({"BROKER", "RACK", ""});
  table.add({"1", "", "controller of the cluster"});
  EXPECT_EQ(table.text(wide(16)),
            "BROKER  1\n"
            "        controller\n"
            "        of the\n"
            "        cluster\n");
}

TEST(TableTest, WithoutRowsThereAreTheHeadings) {
  EXPECT_EQ(Table({"TOPIC", "PARTITIONS"}).text({}), "TOPIC  PARTITIONS\n");
  EXPECT_EQ(Table({"TOPIC", "PARTITIONS"}).text(wide(5)), "TOPIC  PARTITIONS\n");
}

TEST(TableTest, NamesOfSeveralLinesAndCommandsOfTerminalsAreShown) {
  Table table({"GROUP"});
  table.add({"a\nb\x1b[31m"});
  EXPECT_EQ(table.text({}), "GROUP\na\\x0ab\\x1b[31m\n");
}

TEST(TableTest, ColoursAreOfHeadingsAndOfWhatSomebodyHasToLookAfter) {
  Table table({"BROKER", "STATE"});
  table.add({"1", "up"});
  table.add({"2", {"down", Tone::bad}});
  EXPECT_EQ(table.text({.columns = 80, .colours = true}),
            "\x1b[1mBROKER\x1b[0m  \x1b[1mSTATE\x1b[0m\n"
            "1       up\n"
            "2       \x1b[31mdown\x1b[0m\n");
  EXPECT_THAT(table.text(wide(80)), testing::Not(testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace millrace::kernel::cli
