#include "kernel/host/plugin_host.h"

#include "host_fixture.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PluginHostTest : public testing::Test {
 protected:
  /// A host for these plugins alone, options at their defaults.
  PluginHost host_of(std::vector<PlannedPlugin> plugins) {
    return {std::move(plugins), {{"broker.id", "7"}}, {environment_, log_, metrics_}};
  }
  PluginHost host_of(const std::string& text) {
    auto plan = plan_of(text);
    if (!plan) throw std::runtime_error(to_error(plan.error()).detail);
    return host_of(std::move(plan->plugins));
  }
  static PlannedPlugin planned(const std::string& path, const std::string& instance,
                               const std::string& kind = "compression") {
    auto library = load_plugin(path, kind);
    EXPECT_TRUE(library) << library.error().detail;
    std::map<std::string, OptionValue, std::less<>> options{{"level", std::int64_t{3}}};
    return {{kind, instance, instance, {}}, *library, Options(std::move(options))};
  }
  /// The error of starting one bad plugin.
  std::string start_error(const std::string& path, const std::string& instance = "bad",
                          const std::string& kind = "compression") {
    auto host = host_of({planned(path, instance, kind)});
    const auto started = host.start(kind);
    EXPECT_THAT(host.facts(), IsEmpty());
    return started ? "started" : started.error().detail;
  }

  UnusedEnvironment environment_;
  RememberingLog log_;
  UnusedMetrics metrics_;
};

constexpr const char* whole_broker = R"(
[compression]
plugins = ["echo", "after_echo"]
[compression.echo]
level = 5
[coordination]
plugin = "silent"
[storage]
plugin = "silent"
[operators]
plugins = []
[transport.inner]
plugin = "quiet"
listen = "a"
[transport.outer]
plugin = "quiet"
listen = "b"
)";

TEST_F(PluginHostTest, StartsInStagesAndStopsInReverse) {
  auto host = host_of(whole_broker);
  for (const auto kind : plugin_kinds) ASSERT_TRUE(host.start(kind)) << kind;
  EXPECT_THAT(
      log_.lines,
      ElementsAre("org.example.compression.echo: started instance=echo level=5 broker=7 absent=",
                  "org.example.compression.after_echo: started instance=after_echo level=3 "
                  "broker=7 absent=",
                  "org.example.coordination.silent: started", "org.example.storage.silent: started",
                  "transport.quiet: started instance=inner listen=a",
                  "transport.quiet: started instance=outer listen=b"));
  log_.lines.clear();
  host.stop();
  EXPECT_THAT(log_.lines, ElementsAre("transport.quiet: transport destroyed",
                                      "transport.quiet: transport destroyed",
                                      "org.example.storage.silent: storage destroyed",
                                      "org.example.coordination.silent: coordination destroyed",
                                      "org.example.compression.after_echo: codec destroyed",
                                      "org.example.compression.after_echo: plugin destroyed",
                                      "org.example.compression.echo: codec destroyed",
                                      "org.example.compression.echo: plugin destroyed"));
  EXPECT_THAT(host.facts(), IsEmpty());
}

TEST_F(PluginHostTest, OneMoreRunsLikeTheOthersAndOneThatIsRetiredStaysUntilItsKindStops) {
  auto host = host_of(whole_broker);
  for (const auto kind : plugin_kinds) ASSERT_TRUE(host.start(kind)) << kind;
  auto extra = host.planned("transport").at(0);
  extra.request.instance = "extra";
  ASSERT_TRUE(host.add(extra));
  EXPECT_EQ(host.transports().size(), 3U);
  EXPECT_EQ(host.planned().size(), 7U);
  log_.lines.clear();
  host.retire("transport", "extra");
  host.retire("transport", "nowhere");
  EXPECT_THAT(log_.lines, IsEmpty());
  EXPECT_EQ(host.transports().size(), 2U);
  EXPECT_EQ(host.facts().size(), 6U);
  EXPECT_EQ(host.planned().size(), 6U);
  host.stop("transport");
  EXPECT_EQ(log_.lines.size(), 3U);
}

TEST_F(PluginHostTest, OfOneMoreThatDoesNotStartNothingIsLeft) {
  auto host = host_of(whole_broker);
  for (const auto kind : plugin_kinds) ASSERT_TRUE(host.start(kind)) << kind;
  const auto added = host.add(planned(good_plugin("another_gzip"), "another_gzip"));
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().detail.find("already provided by another plugin"), std::string::npos);
  EXPECT_EQ(host.facts().size(), 6U);
  EXPECT_EQ(host.planned().size(), 6U);
}

TEST_F(PluginHostTest, AnswersWhatWasRegistered) {
  auto host = host_of(whole_broker);
  EXPECT_EQ(host.codecs().find(CompressionId::gzip), nullptr);
  for (const auto kind : plugin_kinds) ASSERT_TRUE(host.start(kind)) << kind;
  EXPECT_NE(host.codecs().find(CompressionId::gzip), nullptr);
  EXPECT_NE(host.codecs().find(CompressionId::snappy), nullptr);
  EXPECT_EQ(host.codecs().find(CompressionId::zstd), nullptr);
  EXPECT_NE(&host.storage(), nullptr);
  EXPECT_NE(&host.coordination(), nullptr);
  std::vector<std::string> transports;
  for (const auto& [name, transport] : host.transports()) {
    EXPECT_NE(transport, nullptr);
    transports.push_back(name);
  }
  EXPECT_THAT(transports, ElementsAre("inner", "outer"));

  const auto facts = host.facts();
  ASSERT_EQ(facts.size(), 6U);
  EXPECT_EQ(facts[4].kind, "transport");
  EXPECT_EQ(facts[4].instance, "inner");
  EXPECT_EQ(facts[4].id, "org.millrace.transport.quiet");
  EXPECT_EQ(facts[4].version, "0.1.0");
  EXPECT_EQ(facts[4].path, MILLRACE_TEST_PLUGIN_DIR "/good/transport/quiet.so");
}

TEST_F(PluginHostTest, StopsOneKindAlone) {
  auto host = host_of(whole_broker);
  for (const auto kind : plugin_kinds) ASSERT_TRUE(host.start(kind)) << kind;
  log_.lines.clear();
  host.stop("transport");
  EXPECT_THAT(host.transports(), IsEmpty());
  EXPECT_EQ(log_.lines.size(), 2U);
  host.stop("transport");
  EXPECT_EQ(log_.lines.size(), 2U);
  EXPECT_EQ(host.facts().size(), 4U);
}

TEST_F(PluginHostTest, AFailureKeepsTheEarlierOnesForAnOrderlyStop) {
  std::vector<PlannedPlugin> plugins;
  plugins.push_back(planned(good_plugin("echo"), "echo"));
  plugins.push_back(planned(bad_plugin("start_fails"), "bad"));
  plugins.push_back(planned(good_plugin("after_echo"), "after_echo"));
  {
    auto host = host_of(std::move(plugins));
    ASSERT_FALSE(host.start("compression"));
    EXPECT_EQ(host.facts().size(), 1U);
    log_.lines.clear();
  }
  EXPECT_THAT(log_.lines, ElementsAre("org.example.compression.echo: codec destroyed",
                                      "org.example.compression.echo: plugin destroyed"));
}

TEST_F(PluginHostTest, StartThatFails) {
  const auto path = bad_plugin("start_fails");
  EXPECT_EQ(start_error(path), path +
                                   ": org.example.compression.start_fails (instance bad): "
                                   "start() failed: the tape is full");
}

TEST_F(PluginHostTest, AFailureHasThePlaceOfWhatAskedForThePluginOrOfTheOption) {
  auto plugin = planned(bad_plugin("start_fails"), "bad");
  plugin.request.place = {"millrace.toml", 7, 3};
  const auto failure = [this](const PlannedPlugin& one) {
    return host_of({one}).start("compression").error().detail;
  };
  EXPECT_THAT(failure(plugin),
              testing::StartsWith("millrace.toml:7:3: " + bad_plugin("start_fails")));
  plugin.places = {{"the", {"millrace.toml", 8, 6}}};
  EXPECT_THAT(failure(plugin), testing::StartsWith("millrace.toml:7:3: ")) << "it names no option";
}

TEST_F(PluginHostTest, ATrialGoesOnAfterAFailure) {
  std::vector<PlannedPlugin> plugins;
  plugins.push_back(planned(bad_plugin("start_fails"), "bad"));
  plugins.push_back(planned(good_plugin("echo"), "echo"));
  plugins.push_back(planned(bad_plugin("create_null"), "worse"));
  auto host = host_of(std::move(plugins));
  EXPECT_EQ(host.try_start("compression").size(), 2U);
  EXPECT_EQ(host.facts().size(), 1U);
}

TEST_F(PluginHostTest, StartThatThrows) {
  const auto path = bad_plugin("start_throws");
  EXPECT_EQ(start_error(path), path +
                                   ": org.example.compression.start_throws (instance bad): "
                                   "start() failed: it threw: the tape tore");
  EXPECT_EQ(start_error(path, "number"),
            path +
                ": org.example.compression.start_throws (instance number): start() failed: it "
                "threw something that is not a std::exception");
}

TEST_F(PluginHostTest, CreateThatAnswersNull) {
  const Probe probe;
  const auto path = bad_plugin("create_null");
  EXPECT_EQ(start_error(path), path +
                                   ": org.example.compression.create_null (instance bad): "
                                   "create() returned null: its constructor has failed");
  EXPECT_TRUE(Probe::called());
}

TEST_F(PluginHostTest, ConstructorThatThrows) {
  const auto path = bad_plugin("constructor_throws");
  EXPECT_EQ(start_error(path), path +
                                   ": org.example.compression.constructor_throws (instance "
                                   "bad): create() returned null: its constructor has failed");
}

TEST_F(PluginHostTest, APluginThatRegistersNothing) {
  const auto path = bad_plugin("registers_nothing");
  EXPECT_EQ(start_error(path), path +
                                   ": org.example.compression.registers_nothing (instance bad): "
                                   "start() registered no compression object");
}

TEST_F(PluginHostTest, APluginThatRegistersAnotherKind) {
  const std::string path = MILLRACE_TEST_PLUGIN_DIR "/bad/transport/registers_other_kind.so";
  EXPECT_EQ(start_error(path, "bad", "transport"),
            path +
                ": org.example.transport.registers_other_kind (instance bad): start() failed: "
                "is a transport plugin and registers a compression object");
}

TEST_F(PluginHostTest, TwoCodecsOfOneNumber) {
  auto host = host_of(
      {planned(good_plugin("echo"), "echo"), planned(good_plugin("another_gzip"), "another_gzip")});
  const auto started = host.start("compression");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::conflict);
  EXPECT_EQ(started.error().detail,
            good_plugin("another_gzip") +
                ": org.example.compression.another_gzip: codec 1 is already provided by another "
                "plugin; name one of them in compression.plugins");
  EXPECT_EQ(host.facts().size(), 1U);
}

}  // namespace
}  // namespace millrace::kernel
