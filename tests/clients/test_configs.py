"""Settings through our own tool and through Kafka's: where values come from, what uncovers what, what
a running broker takes up, and what outlives it."""

import json
import subprocess

import pytest

from harness import maven
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.records import Record
from harness.tool import Tool, run

pytestmark = pytest.mark.millrace
KAFKA_TOOL_SECONDS_MAX = 120


@pytest.fixture
def tool(broker) -> Tool:
    return Tool(broker.address)


def described(tool: Tool, *target: str) -> dict[str, dict]:
    (answer,) = tool.json_lines("config", "get", *target, "--all")
    return {one["name"]: one for one in answer["configs"]}


def sources(setting: dict) -> list[tuple[str, str, str]]:
    return [(one["name"], one["value"], one["source"]) for one in setting["synonyms"]]


def test_what_is_taken_away_uncovers_the_next(tmp_path, topic):
    """S09: from the topic over this broker, all brokers and the file down to the default."""
    own = Millrace(tmp_path, {"log.retention.minutes": 10})
    try:
        tool = Tool(own.start().address)
        tool.text("topic", "create", topic)
        of_topic, of_broker, of_all = (
            ("--topic", topic),
            ("--broker", own.id),
            ("--broker-default",),
        )
        tool.text("config", "set", *of_topic, "retention.ms=1000")
        tool.text("config", "set", *of_broker, "log.retention.ms=2000")
        tool.text("config", "set", *of_all, "log.retention.ms=3000")
        layers = [
            ("retention.ms", "1000", "topic"),
            ("log.retention.ms", "2000", "broker"),
            ("log.retention.ms", "3000", "all brokers"),
            ("log.retention.minutes", "10", "file"),
            ("log.retention.hours", "168", "default"),
        ]
        in_force = ["1000", "2000", "3000", "600000"]
        removals = [of_topic, of_broker, of_all, None]
        for at, (value, target) in enumerate(zip(in_force, removals)):
            setting = described(tool, *of_topic)["retention.ms"]
            assert (setting["value"], sources(setting)) == (value, layers[at:])
            if target:
                # What it says will be there is what there is then, where the topic's own counts.
                name = layers[at][0]
                (told,) = tool.json_lines("config", "set", *target, "--unset", name)
                assert told["changes"][0]["before"] == value
                if target is of_topic:
                    assert told["changes"] == [{"name": name, "before": value, "after": in_force[at + 1]}]
        own.end()
    finally:
        own.close()


def test_a_default_never_changes_what_a_topic_has_of_its_own(own_broker, topic):
    """The logs of K09 are looked at in test_compaction.py."""
    tool = Tool(own_broker.address)
    plain, own = f"{topic}-plain", f"{topic}-own"
    tool.text("topic", "create", plain)
    tool.text("topic", "create", own, "--config", "max.message.bytes=1000000")
    tool.text("config", "set", "--topic", own, "cleanup.policy=compact")
    for policy in ("delete", "compact,delete"):
        tool.text("config", "set", "--broker-default", f"log.cleanup.policy={policy}")
        assert described(tool, "--topic", plain)["cleanup.policy"]["value"] == policy
        assert described(tool, "--topic", own)["cleanup.policy"]["value"] == "compact"
    tool.text("config", "set", "--broker-default", "message.max.bytes=5000")
    client = Confluent(own_broker.address)
    large = [Record(b"key", bytes(20_000), partition=0)]
    client.produce(own, large)
    with pytest.raises(Exception, match="(?i)too large"):
        client.produce(plain, large)
    assert described(tool, "--topic", own)["max.message.bytes"]["source"] == "topic"
    client.close()


def test_changes_outlive_the_broker(own_broker, topic):
    tool = Tool(own_broker.address)
    tool.text("topic", "create", topic)
    tool.text("config", "set", "--topic", topic, "retention.ms=1000")
    tool.text("config", "set", "--broker-default", "log.roll.ms=2000000")
    own_broker.kill()
    own_broker.start()
    settings = described(tool, "--topic", topic)
    assert settings["retention.ms"]["value"] == "1000"
    assert settings["segment.ms"]["value"] == "2000000"


def test_open_partitions_take_a_change_up(own_broker, topic):
    tool = Tool(own_broker.address)
    tool.text("topic", "create", topic, "--partitions", 1)
    client = Confluent(own_broker.address)
    folder = own_broker.folder / "data" / f"{topic}-0"
    for count in (1, 5):
        for _ in range(4):
            client.produce(topic, [Record(b"key", bytes(50_000), partition=0)])
        assert len(list(folder.glob("*.log"))) == count
        tool.text("config", "set", "--topic", topic, "segment.bytes=60000")
    client.close()


def test_the_tool_says_why_a_change_is_refused(tool, broker, topic):
    tool.text("topic", "create", topic)
    change = ("--bootstrap", broker.address, "config", "set", "--topic", topic)
    bad = run(*change, "retention.ms=soon")
    assert bad.code == 64
    assert "INVALID_CONFIG: Invalid value soon for configuration retention.ms" in bad.errors
    slip = run(*change, "retention.mss=5")
    assert slip.code == 64 and "nearest known to retention.mss: retention.ms" in slip.errors
    assert "nothing to change" in run(*change).errors
    assert "expected NAME=VALUE" in run(*change, "retention.ms").errors
    assert "expected NAME=VALUE" in run(*change, "=5").errors
    unknown = run("--bootstrap", broker.address, "config", "get", "--topic", "nowhere")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in unknown.errors
    assert described(tool, "--topic", topic)["retention.ms"]["source"] == "default"


def test_a_change_is_shown_before_it_is_made(tool, topic):
    tool.text("topic", "create", topic)
    change = ("config", "set", "--topic", topic, "retention.ms=5")
    tried = tool.text(*change, "--dry-run")
    assert tried.startswith(f"would change topic {topic}\n")
    assert tried.splitlines()[-1].split() == ["retention.ms", "604800000", "->", "5"]
    assert described(tool, "--topic", topic)["retention.ms"]["source"] == "default"
    assert tool.text(*change).startswith(f"changed topic {topic}\n")
    assert described(tool, "--topic", topic)["retention.ms"]["value"] == "5"
    (back,) = tool.json_lines("config", "set", "--topic", topic, "retention.ms=")
    assert back["changes"] == [{"name": "retention.ms", "before": "5", "after": "604800000"}]
    assert described(tool, "--topic", topic)["retention.ms"]["source"] == "default"


def test_kafkas_words_for_it_are_taken_too(tool, topic):
    tool.text("topic", "create", topic)
    tool.text("config", "alter", "--topic", topic, "--set", "retention.ms=5")
    assert "retention.ms" in tool.text("config", "describe", "--topic", topic)
    tool.text("config", "alter", "--topic", topic, "--delete", "retention.ms")
    assert "retention.ms" not in tool.text("config", "describe", "--topic", topic)
    assert "SOURCE" in tool.text("config", "describe", "--all-brokers", "--all")


def test_topics_and_brokers_are_compared(tool, broker, topic):
    one, other = f"{topic}-one", f"{topic}-other"
    tool.text("topic", "create", one, "--config", "retention.ms=5")
    tool.text("topic", "create", other, "--config", "cleanup.policy=compact")

    def differences(*words: str) -> list[dict]:
        return tool.json_lines("config", "diff", *words)[0]["differences"]

    assert differences("--topic", one, "--topic", other) == [
        {"name": "cleanup.policy", "left": "delete", "right": "compact"},
        {"name": "retention.ms", "left": "5", "right": "604800000"},
    ]
    own = [{"name": "retention.ms", "left": "5", "right": "604800000"}]
    assert differences("--topic", one) == own
    assert differences("--topic", one, "--topic", one) == []
    assert "no difference" in tool.text("config", "diff", "--topic", one, "--topic", one)
    assert "num.partitions" in [each["name"] for each in differences("--broker", broker.id)]
    assert differences("--broker", broker.id, "--broker", broker.id) == []
    wrong = run("-b", broker.address, "config", "diff", "--topic", one, "--broker", broker.id)
    assert wrong.code == 64


def test_a_file_is_compared_with_the_broker_that_runs(tool, broker, tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text('[log]\nlevel = "info"\n')
    words = ("config", "diff", "--file", config, "--admin", broker.http_address())
    given = broker.command()[1:]
    assert tool.json_lines(*words, *given)[0]["differences"] == []
    changed = ("--set", f"broker.shards={broker.shards + 1}", "--set", "log.level=debug")
    found = {one["key"]: one for one in tool.json_lines(*words, *given, *changed)[0]["differences"]}
    assert set(found) == {"broker.shards", "log.level"}
    assert found["broker.shards"]["running"]["value"] == str(broker.shards)
    assert found["broker.shards"]["file"]["value"] == str(broker.shards + 1)
    assert found["broker.shards"]["taken_up_by"] == "restart"
    assert found["log.level"]["taken_up_by"] == "reload"
    assert "restart" in tool.text(*words, *given, *changed)
    config.write_text("[brker]\n")
    wrong = run(*words)
    assert wrong.code == 64 and f"{config}:1:2: unknown table brker" in wrong.errors


def test_a_file_is_checked_as_the_daemon_does(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text('[broker]\nidd = 1\n[cluster]\npeer = "http"\n')
    wrong = run("config", "check", config)
    assert wrong.code == 1 and "1 mistake" in wrong.errors
    assert wrong.output.startswith(f"{config}:2:1: unknown key broker.idd; nearest known: id")
    # What only code of a plugin can tell.
    config.write_text('[broker]\nid = 1\n[cluster]\npeer = "http"\n')
    answer = json.loads(run("-o", "json", "config", "check", config).output)
    assert not answer["good"]
    (error,) = answer["errors"]
    assert (error["source"], error["line"], error["column"]) == (str(config), 4, 8)
    assert "does not connect brokers" in error["message"]
    good = run("config", "check", config, "--set", "cluster.peer=")
    assert good.code == 0 and "the configuration is good" in good.output


def test_a_list_grows_and_shrinks(tool, topic):
    tool.text("topic", "create", topic)
    for operation, value, left in [
        ("--append", "compact", "delete,compact"),
        ("--subtract", "delete", "compact"),
        ("--set", "delete", "delete"),
    ]:
        tool.text("config", "set", "--topic", topic, operation, f"cleanup.policy={value}")
        assert described(tool, "--topic", topic)["cleanup.policy"]["value"] == left


def test_settings_are_explained_without_a_broker():
    topic = run("config", "explain", "retention.ms").output
    assert "of a topic" in topic and "604800000" in topic and "log.retention.hours" in topic
    assert "while the broker runs" in run("config", "explain", "log.retention.ms").output
    assert "transport.kafka.listen, of millrace.toml: " in run("config", "explain", "transport.kafka.listen").output
    level = run("config", "explain", "compression.lz4.level").output
    assert "compression.lz4.level, of a topic: " in level
    assert "compression.lz4.level, of millrace.toml: " in level and "compression/lz4" in level
    listed = json.loads(run("-o", "json", "config", "explain").output)["settings"]
    assert {"millrace.toml", "a topic", "a broker", "a group"} == {one["of"] for one in listed}
    unknown = run("config", "explain", "broker.dta")
    assert unknown.code == 1 and "nearest known: broker.data" in unknown.errors


def kafka_configs(address: str, *words: str) -> str:
    """Kafka's own kafka-configs."""
    done = subprocess.run(
        [
            *("java", "-XX:TieredStopAtLevel=1", "-cp", maven.classpath("tools")),
            *("org.apache.kafka.tools.ConfigCommand", "--bootstrap-server", address, *words),
        ],
        capture_output=True,
        text=True,
        timeout=KAFKA_TOOL_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_tool_changes_and_shows(broker, tool, topic):
    tool.text("topic", "create", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    values = "retention.ms=5000,cleanup.policy=[compact,delete]"
    kafka_configs(broker.address, *of_topic, "--alter", "--add-config", values)
    shown = kafka_configs(broker.address, *of_topic, "--describe")
    assert "retention.ms=5000" in shown
    assert "cleanup.policy=compact,delete" in shown
    assert "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete" in shown
    kafka_configs(broker.address, *of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in kafka_configs(broker.address, *of_topic, "--describe")
