// Every way to be wrong, with the exact place and words.
#include <sys/stat.h>

#include "config_fixture.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using ConfigErrorsTest = ConfigFixture;

TEST_F(ConfigErrorsTest, UnknownKeyNamesTheNearest) {
  EXPECT_THAT(problems_in("[broker]\nidd = 3\n"),
              ElementsAre("millrace.toml:2:1: unknown key broker.idd; nearest known: id; [broker] "
                          "has data, id, memory, rack, shards"));
  EXPECT_THAT(problems_in("[broker]\n\"a b\" = 3\n"),
              ElementsAre("millrace.toml:2:1: unknown key broker.\"a b\"; [broker] has data, id, "
                          "memory, rack, shards"));
}

TEST_F(ConfigErrorsTest, UnknownKeyOfAPlugin) {
  EXPECT_THAT(problems_in("[storage]\nplugin = \"filelog\"\nsink = \"always\"\n"),
              ElementsAre("millrace.toml:3:1: unknown key storage.sink; nearest known: sync; "
                          "[storage] has plugin, sync"));
  EXPECT_THAT(problems_in("[transport.inner]\nplugin = \"kafka\"\nlisen = \"x\"\n"),
              ElementsAre(StartsWith("millrace.toml:3:1: unknown key transport.inner.lisen; "
                                     "nearest known: listen; [transport.inner] has allow, ")));
}

TEST_F(ConfigErrorsTest, UnknownTable) {
  EXPECT_THAT(
      problems_in("[brokr]\nid = 1\n"),
      ElementsAre("millrace.toml:1:2: unknown table brokr; nearest known: broker; tables are "
                  "broker, cluster, compression, coordination, defaults, log, operators, plugins, "
                  "storage, stream, topic, transport"));
  EXPECT_THAT(problems_in("listen = 3\n"),
              ElementsAre(StartsWith("millrace.toml:1:1: unknown key listen; tables are ")));
}

TEST_F(ConfigErrorsTest, ValueWhereATableBelongs) {
  EXPECT_THAT(problems_in("storage = \"memory\"\n"),
              ElementsAre("millrace.toml:1:1: storage is a table: write [storage] and its keys "
                          "below"));
  EXPECT_THAT(problems_in("[transport]\nlisten = \"x\"\n"),
              ElementsAre("millrace.toml:2:1: transport.listen stands in the table of one "
                          "transport, such as [transport.kafka]"));
  EXPECT_THAT(problems_in("[log]\nlevels = \"debug\"\n"),
              ElementsAre("millrace.toml:2:1: log.levels is a table: write [log.levels] and "
                          "SUBSYSTEM = LEVEL below"));
}

TEST_F(ConfigErrorsTest, WrongType) {
  EXPECT_THAT(problems_in("[broker]\nid = \"three\"\n"),
              ElementsAre("millrace.toml:2:6: broker.id: expected an integer from 0 to 2147483647, "
                          "found text \"three\""));
  EXPECT_THAT(problems_in("[broker]\nid = 1.5\n"),
              ElementsAre("millrace.toml:2:6: broker.id: expected an integer from 0 to 2147483647, "
                          "found number 1.5"));
  EXPECT_THAT(problems_in("[broker]\ndata = 5\n"),
              ElementsAre("millrace.toml:2:8: broker.data: expected a text, found integer 5"));
  EXPECT_THAT(problems_in("[transport.kafka]\nstrict = 1\n"),
              ElementsAre("millrace.toml:2:10: transport.kafka.strict: expected true or false, "
                          "found integer 1"));
  EXPECT_THAT(problems_in("[transport.kafka]\nshare = [1]\n"),
              ElementsAre("millrace.toml:2:9: transport.kafka.share: expected a number from 0 to "
                          "4, found a "
                          "list"));
  EXPECT_THAT(problems_in("[plugins]\npath = \"/opt\"\n"),
              ElementsAre("millrace.toml:2:8: plugins.path: expected a list of texts, such as "
                          "[\"a\", \"b\"], found text \"/opt\""));
  EXPECT_THAT(problems_in("[plugins]\npath = [1]\n"),
              ElementsAre("millrace.toml:2:8: plugins.path: expected a list of texts, such as "
                          "[\"a\", \"b\"], found a list"));
  EXPECT_THAT(problems_in("[broker]\nrack = 2026-01-02\n"),
              ElementsAre("millrace.toml:2:8: broker.rack: expected a text, found a date or time"));
  EXPECT_THAT(problems_in("[broker.data]\nx = 1\n"),
              ElementsAre(testing::EndsWith("broker.data: expected a text, found a table")));
}

TEST_F(ConfigErrorsTest, NoTextHasANul) {
  EXPECT_THAT(problems_in("[broker]\ndata = \"/a\\u0000b\"\n"),
              ElementsAre("millrace.toml:2:8: broker.data: expected a text, found a NUL in it"));
  EXPECT_THAT(problems_in("[plugins]\npath = [\"/a\", \"/b\\u0000\"]\n"),
              ElementsAre("millrace.toml:2:8: plugins.path: expected a list of texts, such as "
                          "[\"a\", \"b\"], found a NUL in it"));
}

TEST_F(ConfigErrorsTest, DataIsSomewhere) {
  EXPECT_THAT(problems_in("[broker]\ndata = \"\"\n"),
              ElementsAre("millrace.toml:2:8: broker.data: expected a folder, found text \"\""));
}

TEST_F(ConfigErrorsTest, OutOfRange) {
  EXPECT_THAT(problems_in("[broker]\nid = -1\n"),
              ElementsAre("millrace.toml:2:6: broker.id: expected an integer from 0 to 2147483647, "
                          "found integer -1"));
  EXPECT_THAT(problems_in("[transport.kafka]\nidle = 0\n"),
              ElementsAre("millrace.toml:2:8: transport.kafka.idle: expected an integer from 1 to "
                          "86400000 (ms), found integer 0"));
}

TEST_F(ConfigErrorsTest, NumbersHaveBoundsToo) {
  EXPECT_THAT(problems_in("[transport.kafka]\nshare = 4.5\n"),
              ElementsAre("millrace.toml:2:9: transport.kafka.share: expected a number from 0 to "
                          "4, found number 4.5"));
}

TEST_F(ConfigErrorsTest, BadChoice) {
  EXPECT_THAT(problems_in("[log]\nlevel = \"warn\"\n"),
              ElementsAre("millrace.toml:2:9: log.level: expected one of \"trace\", \"debug\", "
                          "\"info\", \"warning\", \"error\", found text \"warn\"; nearest known: "
                          "warning"));
  EXPECT_THAT(problems_in("[log.levels]\n\"env.net\" = \"debgu\"\n"),
              ElementsAre("millrace.toml:2:13: log.levels.\"env.net\": expected one of \"trace\", "
                          "\"debug\", \"info\", \"warning\", \"error\", found text \"debgu\"; "
                          "nearest known: debug"));
}

TEST_F(ConfigErrorsTest, MissingRequired) {
  EXPECT_THAT(problems_in("[coordination]\nplugin = \"zookeeper\"\n"),
              ElementsAre("millrace.toml:2:10: [coordination] needs connect: a text"));
  EXPECT_THAT(problems_of_set("coordination.plugin=zookeeper"),
              ElementsAre("--set coordination.plugin=…: [coordination] needs connect: a text"));
}

TEST_F(ConfigErrorsTest, SecretsAreNotPrinted) {
  EXPECT_THAT(problems_in("[transport.kafka]\npassword = \"hunter2\"\n"),
              ElementsAre("millrace.toml:2:12: transport.kafka.password: expected one of \"long\", "
                          "\"longer\", found a text (not shown)"));
  const auto lines = problems_of_set("transport.kafka.password=hunter2");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], StartsWith("--set transport.kafka.password=…: transport.kafka.password: "));
  EXPECT_THAT(lines[0], testing::Not(testing::HasSubstr("hunter2")));
}

TEST_F(ConfigErrorsTest, MissingFile) {
  EXPECT_THAT(problems({.path = folder_ + "/none.toml", .sets = {}}),
              ElementsAre("none.toml: cannot read this file: No such file or directory"));
  EXPECT_THAT(problems({.path = folder_, .sets = {}}),
              ElementsAre(testing::EndsWith(": this is a folder, expected a file")));
}

TEST_F(ConfigErrorsTest, WhatIsNoFileOfConfD) {
  const auto path = write("millrace.toml", "");
  std::filesystem::create_directories(folder_ + "/conf.d/folder.toml");
  ASSERT_EQ(::mkfifo((folder_ + "/conf.d/pipe.toml").c_str(), 0600), 0);
  std::filesystem::create_symlink("/nowhere", folder_ + "/conf.d/gone.toml");
  EXPECT_THAT(problems({.path = path, .sets = {}}),
              ElementsAre("conf.d/folder.toml: this is a folder, expected a file",
                          "conf.d/gone.toml: cannot read this file: No such file or directory",
                          "conf.d/pipe.toml: this is no regular file"));
}

TEST_F(ConfigErrorsTest, AConfDThatCannotBeLookedIntoIsNotTakenForNone) {
  const auto path = write("millrace.toml", "");
  write("conf.d", "");
  EXPECT_THAT(problems({.path = path, .sets = {}}),
              ElementsAre("conf.d: cannot look into this folder: Not a directory"));
}

TEST_F(ConfigErrorsTest, KeysAreNoDeeperThanTheStack) {
  std::string deep = "a";
  for (int more = 0; more < 100'000; ++more) deep += ".a";
  const auto told = testing::HasSubstr("this key has more than 16 names; no table is that deep");
  EXPECT_THAT(problems_in("\n[" + deep + "]\n"),
              ElementsAre(testing::AllOf(StartsWith("millrace.toml:2:33: "), told)));
  EXPECT_THAT(problems_in("[[" + deep + "]]\n"), ElementsAre(told));
  EXPECT_THAT(problems_in(deep + " = 1\n"), ElementsAre(told));
  EXPECT_THAT(problems_in("x = { " + deep + " = 1 }\n"), ElementsAre(told));
  EXPECT_THAT(problems_of_set(deep + "=1"), ElementsAre(told));
  EXPECT_THAT(problems_of_set("broker.id={" + deep + "=1}"),
              ElementsAre(testing::HasSubstr("broker.id: expected an integer")));
  const std::string dots(1'000, '.');
  EXPECT_THAT(problems_in("# " + dots + "\n[broker]\nrack = \"\\\"" + dots + "\"\n"), IsEmpty());
  EXPECT_THAT(problems_in("[broker]\nrack = \"\"\"\n\"" + dots + "\"\"\" # " + dots + "\n"),
              IsEmpty());
  EXPECT_THAT(problems_in("[broker]\nrack = '" + dots + "'\n"), IsEmpty());
}

TEST_F(ConfigErrorsTest, DuplicateKeyWithinAFile) {
  EXPECT_THAT(problems_in("[broker]\nid = 1\nrack = \"a\"\nid = 2\n"),
              ElementsAre("millrace.toml:4:6: Error while parsing key-value pair: cannot redefine "
                          "existing integer 'id'; a key or table stands once in a file (a later "
                          "file or --set may replace it)"));
  EXPECT_THAT(problems_in("[broker]\nid = 1\n[broker]\nrack = \"a\"\n"),
              ElementsAre("millrace.toml:3:1: Error while parsing table header: cannot redefine "
                          "existing table 'broker'; a key or table stands once in a file (a later "
                          "file or --set may replace it)"));
}

TEST_F(ConfigErrorsTest, BrokenTomlInEveryFile) {
  const auto path = write("millrace.toml", "[broker]\nid = \n");
  write("conf.d/a.toml", "x\n");
  EXPECT_THAT(problems({.path = path, .sets = {}}),
              ElementsAre(StartsWith("millrace.toml:2:"), StartsWith("conf.d/a.toml:1:")));
}

TEST_F(ConfigErrorsTest, LettersBeyondAsciiAreNoBlanks) {
  EXPECT_THAT(problems_in("[broker]\nid = é\n"), ElementsAre(StartsWith("millrace.toml:2:6: ")));
  EXPECT_THAT(problems_in("[broker]\n\u045e = 1\n"),
              ElementsAre(StartsWith("millrace.toml:2:1: ")));
  EXPECT_THAT(problems_in("[broker] # é\nrack = \"\"\"\\\n  é\"\"\"\n"), IsEmpty());
  EXPECT_THAT(problems_of_set("broker\u045e=1"), ElementsAre(StartsWith("--set broker\u045e=…: ")));
}

TEST_F(ConfigErrorsTest, SignsInPlaceOfKeys) {
  EXPECT_THAT(problems_in("[#x]\n"), ElementsAre(StartsWith("millrace.toml:1:2: ")));
  EXPECT_THAT(problems_in("[broker]\nx = {#}\n"), ElementsAre(StartsWith("millrace.toml:2:")));
  EXPECT_THAT(problems_in("[broker]\n=\n"), ElementsAre(StartsWith("millrace.toml:2:")));
}

TEST_F(ConfigErrorsTest, EverythingWrongIsReportedAtOnceInOrder) {
  const auto path = write("millrace.toml",
                          "[transport.kafka]\nidle = \"x\"\n[broker]\nid = -1\nfoo = 1\n"
                          "[storage]\nsync = \"never\"\n[defaults]\n\"num.partition\" = 1\n");
  write("conf.d/a.toml", "[log]\nformat = \"xml\"\n");
  EXPECT_THAT(problems({.path = path, .sets = {"broker.shards=300"}}),
              ElementsAre(StartsWith("--set broker.shards=…: broker.shards: expected"),
                          StartsWith("conf.d/a.toml:2:10: log.format: "),
                          StartsWith("millrace.toml:2:8: transport.kafka.idle: "),
                          StartsWith("millrace.toml:4:6: broker.id: "),
                          StartsWith("millrace.toml:5:1: unknown key broker.foo"),
                          StartsWith("millrace.toml:7:8: storage.sync: "),
                          StartsWith("millrace.toml:9:1: unknown key defaults.\"num.partition\"; "
                                     "nearest known: num.partitions")));
}

TEST_F(ConfigErrorsTest, NamesWithDotsAreQuotedInEveryTable) {
  EXPECT_THAT(problems_of_set("transport.kafka.max.peers=3"),
              ElementsAre("--set transport.kafka.max.peers=…: a name with dots is quoted: "
                          "transport.kafka.\"max.peers\""));
  EXPECT_THAT(problems_in("[storage.tape]\n"),
              ElementsAre("millrace.toml:1:10: unknown key storage.tape; [storage] has plugin, "
                          "sync"));
}

TEST_F(ConfigErrorsTest, UnquotedKafkaNames) {
  EXPECT_THAT(problems_of_set("defaults.num.partitions=3"),
              ElementsAre("--set defaults.num.partitions=…: a name with dots is quoted: "
                          "defaults.\"num.partitions\""));
  EXPECT_THAT(problems_in("[defaults]\nnum.partition = 3\n"),
              ElementsAre(StartsWith(
                  "millrace.toml:2:5: unknown key defaults.\"num.partition\"; nearest known: "
                  "num.partitions")));
}

TEST_F(ConfigErrorsTest, BadSets) {
  EXPECT_THAT(problems_of_set("broker.idd=3"),
              ElementsAre("--set broker.idd=…: unknown key broker.idd; nearest known: id; [broker] "
                          "has data, id, memory, rack, shards"));
  EXPECT_THAT(problems_of_set("broker.id"),
              ElementsAre("--set broker.id: expected KEY=VALUE, such as "
                          "broker.data=/srv/millrace"));
  EXPECT_THAT(problems_of_set("broker..id=3"),
              ElementsAre(testing::AllOf(
                  StartsWith("--set broker..id=…: "),
                  testing::EndsWith("; keys are dotted and quoted as in TOML, such as broker.data "
                                    "or 'defaults.\"num.partitions\"'"))));
  EXPECT_THAT(problems_of_set("=3"), ElementsAre(StartsWith("--set =…: ")));
  EXPECT_THAT(problems_of_set("#=3"), ElementsAre(StartsWith("--set #=…: there is no key; ")));
  EXPECT_THAT(problems_of_set("a=1\nbroker.id=2"), ElementsAre(StartsWith("--set a=…: unknown")));
}

TEST_F(ConfigErrorsTest, PluginNames) {
  EXPECT_THAT(problems_in("[storage]\nplugin = \"../x\"\n"),
              ElementsAre("millrace.toml:2:10: storage.plugin: expected the NAME of "
                          "storage/NAME.so in a plugin folder, found \"../x\""));
  EXPECT_THAT(problems_in("[storage]\nplugin = 3\n"),
              ElementsAre("millrace.toml:2:10: storage.plugin: expected a text, found integer 3"));
  EXPECT_THAT(problems_in("[transport.\"a/b\"]\n"),
              ElementsAre(StartsWith("millrace.toml:1:12: transport.\"a/b\": ")));
  EXPECT_THAT(problems_in("[compression]\nplugins = [\"a/b\"]\n"),
              ElementsAre(StartsWith("millrace.toml:2:11: compression.plugins: ")));
}

TEST_F(ConfigErrorsTest, OptionsOfACodecThatIsNotLoaded) {
  EXPECT_THAT(problems_in("[compression.gzpi]\nlevel = 1\n"),
              ElementsAre("millrace.toml:1:14: [compression.gzpi]: no codec of this name is "
                          "loaded; nearest known: gzip; loaded: gzip, zstd"));
  EXPECT_THAT(problems_in("[operators.groups]\nlevel = 1\n"),
              ElementsAre("millrace.toml:1:12: [operators.groups]: no operators plugin of this "
                          "name is loaded; loaded: none"));
  EXPECT_THAT(problems_in("[operators]\nsnapshot_events = 0\nplugins = [\"a\", \"a\"]\n"),
              ElementsAre(StartsWith("millrace.toml:2:19: operators.snapshot_events: "),
                          "millrace.toml:3:11: operators.plugins: \"a\" stands twice"));
  EXPECT_THAT(problems_in("[compression]\nplugin = [\"gzip\"]\n"),
              ElementsAre("millrace.toml:2:1: unknown key compression.plugin; nearest known: "
                          "plugins; [compression] has plugins"));
}

TEST_F(ConfigErrorsTest, ACodecChosenTwice) {
  EXPECT_THAT(problems_in("[compression]\nplugins = [\"gzip\", \"zstd\", \"gzip\"]\n"),
              ElementsAre("millrace.toml:2:11: compression.plugins: \"gzip\" stands twice"));
}

TEST_F(ConfigErrorsTest, BrokersReachEachOtherByATransportThatThereIs) {
  EXPECT_THAT(problems_in("[cluster]\npeer = \"kafka\"\n"), IsEmpty());
  EXPECT_THAT(problems_in("[cluster]\npeer = \"\"\n"), IsEmpty());
  EXPECT_THAT(problems_in("[cluster]\npeer = \"x\"\n"),
              ElementsAre("millrace.toml:2:8: cluster.peer: there is no [transport.x]; transports "
                          "are http, kafka"));
  EXPECT_THAT(problems_in("[cluster]\npeer = \"iner\"\n[transport.kafka]\n"
                          "[transport.inner]\nplugin = \"kafka\"\n"),
              ElementsAre("millrace.toml:2:8: cluster.peer: there is no [transport.iner]; nearest "
                          "known: inner; transports are inner, kafka"));
  EXPECT_THAT(problems_in("[cluster]\npeer = 3\n"),
              ElementsAre("millrace.toml:2:8: cluster.peer: expected a text, found integer 3"));
  EXPECT_THAT(problems_in("[cluster]\npeers = \"kafka\"\n"),
              ElementsAre("millrace.toml:2:1: unknown key cluster.peers; nearest known: peer; "
                          "[cluster] has peer"));
}

TEST_F(ConfigErrorsTest, OptionsOfAPluginThatIsNotThereAreLeftToItsFinder) {
  EXPECT_THAT(problems_in("[storage]\nplugin = \"absent\"\nwhatever = 1\n"), IsEmpty());
}

TEST_F(ConfigErrorsTest, DeclarationThatContradictsItself) {
  static constexpr MillraceOption broken[] = {
      {"size", MILLRACE_OPTION_INTEGER, "bytes", "many", 1, 9, nullptr, "Size.", 0},
      end_of_options};
  const auto config = Config::load({});
  ASSERT_TRUE(config);
  const auto settings =
      config->check({{{"storage", "x", "x", {}}, broken}}, kafka_defaults, topic_settings);
  ASSERT_FALSE(settings);
  ASSERT_EQ(settings.error().size(), 1U);
  EXPECT_EQ(settings.error()[0].message,
            "storage.size declares the default \"many\", which is not an integer from 1 to 9 "
            "(bytes); a mistake in the plugin");
}

TEST_F(ConfigErrorsTest, ErrorsMakeOneErrorOfManyLines) {
  const auto error = to_error({{{"a.toml", 1, 2}, "x"}, {{"--set b=…"}, "y"}});
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_EQ(error.detail, "a.toml:1:2: x\n--set b=…: y");
}

}  // namespace
}  // namespace millrace::kernel
