// What a correct configuration means.
#include "kernel/config/config.h"

#include "config_fixture.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using ConfigTest = ConfigFixture;

const Options& options_of_instance(const Settings& settings, const std::string& kind,
                                   const std::string& instance) {
  for (const auto& found : settings.instances) {
    if (found.request.kind == kind && found.request.instance == instance) return found.options;
  }
  throw std::runtime_error("no instance " + kind + "/" + instance);
}

std::vector<std::string> requests(const Config& config, const std::vector<std::string>& codecs) {
  std::vector<std::string> result;
  for (const auto& r : config.plugins(codecs, {})) {
    result.push_back(r.kind + '/' + r.instance + '=' + r.plugin);
  }
  return result;
}

TEST_F(ConfigTest, EmbeddedDefaultIsABrokerThatServesKafkaAndHttp) {
  const auto config = Config::load({});
  ASSERT_TRUE(config);
  EXPECT_THAT(requests(*config, {"gzip", "lz4"}),
              ElementsAre("compression/gzip=gzip", "compression/lz4=lz4",
                          "coordination/standalone=standalone", "storage/filelog=filelog",
                          "transport/http=http", "transport/kafka=kafka"));
  EXPECT_THAT(config->plugin_folders(), IsEmpty());

  const auto settings = check({});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->broker.id, 0);
  EXPECT_EQ(settings->broker.data, "/var/lib/millrace/data");
  EXPECT_EQ(settings->broker.rack, "");
  EXPECT_EQ(settings->broker.shards, 0U);
  EXPECT_EQ(settings->broker.memory_bytes, 268'435'456U);
  EXPECT_EQ(settings->log.level, LogLevel::info);
  EXPECT_EQ(settings->log.format, "text");
  EXPECT_THAT(settings->log.levels, IsEmpty());
  EXPECT_THAT(settings->defaults, IsEmpty());
}

TEST_F(ConfigTest, AFileThatNamesATransportHasThatOneAlone) {
  const auto transports_of = [this](const std::string& text, std::vector<std::string> sets) {
    const auto config = Config::load({.path = write("m.toml", text), .sets = std::move(sets)});
    return requests(*config, {});
  };
  EXPECT_THAT(transports_of("", {}), ::testing::Contains("transport/http=http"));
  EXPECT_THAT(transports_of("[transport]", {}), ::testing::Contains("transport/http=http"));
  EXPECT_THAT(transports_of("[transport.kafka]", {}),
              ::testing::Not(::testing::Contains("transport/http=http")));
  EXPECT_THAT(transports_of("", {"transport.kafka.listen=127.0.0.1:0"}),
              ::testing::Not(::testing::Contains("transport/http=http")));
}

TEST_F(ConfigTest, ASetOfTheEmbeddedDefaultTakesNoTransportAway) {
  const auto config = Config::load({.path = "", .sets = {"transport.kafka.listen=127.0.0.1:0"}});
  ASSERT_TRUE(config);
  EXPECT_THAT(requests(*config, {}), ::testing::Contains("transport/http=http"));
}

TEST_F(ConfigTest, EveryOptionIsToldWithItsSource) {
  const auto path =
      write("m.toml",
            "[transport.kafka]\nidle = 5\npassword = \"long\"\n"
            "[defaults]\n\"num.partitions\" = 3\n[log.levels]\nstorage = \"debug\"\n");
  const auto settings = check({.path = path, .sets = {"broker.data=/tmp/x"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  const auto fact = [&settings](std::string_view key) {
    const auto found = std::ranges::find(settings->facts, key, &SettingFact::key);
    return found == settings->facts.end() ? "none" : found->value + " from " + found->source;
  };
  EXPECT_TRUE(std::ranges::is_sorted(settings->facts, {}, &SettingFact::key));
  EXPECT_EQ(fact("broker.data"), "/tmp/x from --set broker.data=…");
  EXPECT_EQ(fact("broker.id"), "0 from default");
  EXPECT_EQ(fact("defaults.\"num.partitions\""), "3 from " + path + ":5:20");
  EXPECT_EQ(fact("defaults.\"auto.create.topics.enable\""), "true from default");
  EXPECT_EQ(fact("log.levels.storage"), "debug from " + path + ":7:11");
  EXPECT_EQ(fact("storage.plugin"), "filelog from default");
  EXPECT_EQ(fact("transport.kafka.idle"), "5 from " + path + ":2:8");
  EXPECT_EQ(fact("transport.kafka.allow"), "a,b from default");
  EXPECT_EQ(fact("transport.kafka.password"), " from " + path + ":3:12");
}

TEST_F(ConfigTest, DefaultsOfAPluginAreFilledInByType) {
  const auto settings = check({});
  ASSERT_TRUE(settings);
  const auto& kafka = options_of_instance(*settings, "transport", "kafka");
  EXPECT_EQ(kafka.text("listen"), "127.0.0.1:9092");
  EXPECT_EQ(kafka.integer("idle"), 600'000);
  EXPECT_FALSE(kafka.boolean("strict"));
  EXPECT_EQ(kafka.number("share"), 0.5);
  EXPECT_THAT(kafka.texts("allow"), ElementsAre("a", "b"));
  EXPECT_FALSE(kafka.has("password"));
}

TEST_F(ConfigTest, EveryTableIsRead) {
  const auto path = write("millrace.toml", R"(
[broker]
id = 7
data = "/srv/data"
rack = "north"
shards = 2
memory = 1048576
[log]
level = "warning"
format = "json"
[log.levels]
"storage.filelog" = "trace"
[plugins]
path = ["/opt/a", "/opt/b"]
[coordination]
plugin = "zookeeper"
connect = "zk:2181"
[storage]
sync = "always"
[transport.kafka]
idle = 5
strict = true
share = 2
allow = []
[transport.inner]
plugin = "kafka"
listen = "10.0.0.1:9093"
[compression]
plugins = ["zstd"]
[compression.zstd]
[defaults]
"num.partitions" = 3
"auto.create.topics.enable" = false
)");
  const auto config = Config::load({.path = path, .sets = {}});
  ASSERT_TRUE(config);
  EXPECT_THAT(config->plugin_folders(), ElementsAre("/opt/a", "/opt/b"));
  EXPECT_THAT(
      requests(*config, codecs_found_),
      ElementsAre("compression/zstd=zstd", "coordination/zookeeper=zookeeper",
                  "storage/filelog=filelog", "transport/inner=kafka", "transport/kafka=kafka"));

  const auto settings = check({.path = path, .sets = {}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->broker.id, 7);
  EXPECT_EQ(settings->broker.data, "/srv/data");
  EXPECT_EQ(settings->broker.rack, "north");
  EXPECT_EQ(settings->broker.shards, 2U);
  EXPECT_EQ(settings->broker.memory_bytes, 1'048'576U);
  EXPECT_EQ(settings->log.level, LogLevel::warning);
  EXPECT_EQ(settings->log.format, "json");
  EXPECT_THAT(settings->log.levels, ElementsAre(Pair("storage.filelog", LogLevel::trace)));
  EXPECT_THAT(settings->defaults,
              ElementsAre(Pair("auto.create.topics.enable", "false"), Pair("num.partitions", "3")));
  EXPECT_EQ(options_of_instance(*settings, "coordination", "zookeeper").text("connect"), "zk:2181");
  EXPECT_EQ(options_of_instance(*settings, "storage", "filelog").text("sync"), "always");
  const auto& kafka = options_of_instance(*settings, "transport", "kafka");
  EXPECT_EQ(kafka.integer("idle"), 5);
  EXPECT_TRUE(kafka.boolean("strict"));
  EXPECT_EQ(kafka.number("share"), 2.0);
  EXPECT_THAT(kafka.texts("allow"), IsEmpty());
  EXPECT_EQ(options_of_instance(*settings, "transport", "inner").text("listen"), "10.0.0.1:9093");
}

TEST_F(ConfigTest, LaterSourcesWin) {
  const auto path = write("millrace.toml", "[broker]\nid = 1\nrack = \"main\"\ndata = \"/main\"\n");
  write("conf.d/20-site.toml", "broker.rack = \"site\"\n");
  write("conf.d/10-base.toml", "[broker]\nrack = \"base\"\nshards = 3\n");
  write("conf.d/30-ignored.conf", "not toml");
  write("conf.d/.40-hidden.toml", "not toml");
  std::filesystem::create_symlink("who@host.1", folder_ + "/conf.d/.#20-site.toml");
  const auto settings = check({.path = path, .sets = {"broker.id=2", "broker.id=3"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->broker.id, 3);
  EXPECT_EQ(settings->broker.rack, "site");
  EXPECT_EQ(settings->broker.shards, 3U);
  EXPECT_EQ(settings->broker.data, "/main");
}

TEST_F(ConfigTest, SetReachesEveryKey) {
  const auto settings =
      check({.path = "",
             .sets = {"broker.data=/tmp/x", "transport.kafka.listen=[::1]:9092",
                      R"(defaults."num.partitions"=3)", "broker.rack=12",
                      "transport.kafka.allow=[\"x\"]", R"(log.levels.'storage.filelog'=debug)"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->broker.data, "/tmp/x");
  EXPECT_EQ(settings->broker.rack, "12");
  EXPECT_THAT(settings->defaults, ElementsAre(Pair("num.partitions", "3")));
  EXPECT_THAT(settings->log.levels, ElementsAre(Pair("storage.filelog", LogLevel::debug)));
  const auto& kafka = options_of_instance(*settings, "transport", "kafka");
  EXPECT_EQ(kafka.text("listen"), "[::1]:9092");
  EXPECT_THAT(kafka.texts("allow"), ElementsAre("x"));
}

TEST_F(ConfigTest, SetTakesWhatIsNoTomlValueAsAText) {
  for (const auto& [set, expected] : {std::pair<std::string, std::string>{"broker.rack=", ""},
                                      {"broker.rack=a=b", "a=b"},
                                      {"broker.rack=\"quoted\"", "quoted"},
                                      {"broker.rack=2026-01-02", "2026-01-02"},
                                      {"broker.rack=true", "true"},
                                      {"broker.rack=1\nid = 9", "1\nid = 9"}}) {
    const auto settings = check({.path = "", .sets = {set}});
    ASSERT_TRUE(settings) << set << ": " << to_error(settings.error()).detail;
    EXPECT_EQ(settings->broker.rack, expected) << set;
    EXPECT_EQ(settings->broker.id, 0) << set;
  }
}

TEST_F(ConfigTest, OperatorsThatProvideAServiceRunUnlessOthersAreChosen) {
  const auto config = Config::load({.path = "", .sets = {}});
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->chooses_operators());
  const auto found = config->plugins({}, {"accounts"});
  EXPECT_TRUE(std::ranges::any_of(found, [](const PluginRequest& request) {
    return request.kind == "operators" && request.instance == "accounts";
  }));

  const auto chosen = Config::load({.path = "", .sets = {"operators.plugins=['words']"}});
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(chosen->chooses_operators());
  for (const auto& request : chosen->plugins({}, {"accounts"})) {
    if (request.kind == "operators") EXPECT_EQ(request.instance, "words");
  }
}

TEST_F(ConfigTest, OperatorsHaveOptionsTogetherAndEachItsOwn) {
  services_found_ = {"accounts"};
  auto settings = check({.path = "", .sets = {}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->operators.snapshot_events, 100'000u);
  EXPECT_EQ(settings->operators.snapshot_bytes, 16'777'216u);
  settings = check(
      {.path = "", .sets = {"operators.snapshot_events=5", "operators.accounts.sync=always"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  EXPECT_EQ(settings->operators.snapshot_events, 5u);
  const auto own = std::ranges::find_if(settings->instances, [](const auto& instance) {
    return instance.request.kind == "operators";
  });
  ASSERT_NE(own, settings->instances.end());
  EXPECT_EQ(own->options.text("sync"), "always");
}

TEST_F(ConfigTest, RequestsSayWhereTheyWereAskedFor) {
  const auto path = write("millrace.toml", "[storage]\nplugin = \"memory\"\n\n[transport.kafka]\n");
  const auto config = Config::load({.path = path, .sets = {"coordination.plugin=zookeeper"}});
  ASSERT_TRUE(config);
  const auto all = config->plugins({"gzip"}, {});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(to_string({all[0].place, "gzip"}), "gzip");
  EXPECT_EQ(to_string({all[1].place, "zk"}), "--set coordination.plugin=…: zk");
  EXPECT_EQ(to_string({all[2].place, "memory"}), path + ":2:10: memory");
  EXPECT_EQ(to_string({all[3].place, "kafka"}), path + ":4:12: kafka");
}

TEST_F(ConfigTest, AReasonIsPlacedAtTheOptionThatItBeginsWith) {
  const OptionPlaces places{
      {"tls", {"m.toml", 3, 7}}, {"to", {"m.toml", 4, 6}}, {"topics", {"m.toml", 5, 10}}};
  const auto placed = [&places](std::string_view reason) {
    return to_string(place_of_reason(reason, places, {"m.toml", 2, 12}));
  };
  EXPECT_EQ(placed("to: expected a number, found \"many\""), "m.toml:4:6");
  EXPECT_EQ(placed("topics: none"), "m.toml:5:10");
  EXPECT_EQ(placed("tls = true: not there"), "m.toml:3:7");
  EXPECT_EQ(placed("to be or not"), "m.toml:2:12") << "of no option in particular";
  EXPECT_EQ(placed("field: missing"), "m.toml:2:12") << "nobody wrote it";
}

TEST_F(ConfigTest, AnInstanceKnowsWhereItsOptionsAreWritten) {
  const auto path = write("m.toml", "[transport.kafka]\nlisten = \"x\"\n");
  const auto settings = check({.path = path, .sets = {"transport.kafka.idle=5"}});
  ASSERT_TRUE(settings) << to_error(settings.error()).detail;
  const auto kafka = std::ranges::find_if(
      settings->instances, [](const auto& one) { return one.request.instance == "kafka"; });
  ASSERT_NE(kafka, settings->instances.end());
  ASSERT_EQ(kafka->places.size(), 2U);
  EXPECT_EQ(to_string(kafka->places.at("listen")), path + ":2:10");
  EXPECT_EQ(to_string(kafka->places.at("idle")), "--set transport.kafka.idle=…");
}

}  // namespace
}  // namespace millrace::kernel
