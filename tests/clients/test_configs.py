"""Settings through our own tool and through Kafka's: where values come from, what uncovers what, what
a running broker takes up, and what outlives it."""

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
    (answer,) = tool.json_lines("config", "describe", *target, "--all")
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
            ("--all-brokers",),
        )
        tool.text("config", "alter", *of_topic, "--set", "retention.ms=1000")
        tool.text("config", "alter", *of_broker, "--set", "log.retention.ms=2000")
        tool.text("config", "alter", *of_all, "--set", "log.retention.ms=3000")
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
                tool.text("config", "alter", *target, "--delete", layers[at][0])
        own.end()
    finally:
        own.close()


def test_a_default_never_changes_what_a_topic_has_of_its_own(own_broker, topic):
    """K09, as far as it needs no compaction."""
    tool = Tool(own_broker.address)
    plain, own = f"{topic}-plain", f"{topic}-own"
    tool.text("topic", "create", plain)
    tool.text("topic", "create", own, "--config", "max.message.bytes=1000000")
    tool.text("config", "alter", "--topic", own, "--set", "cleanup.policy=compact")
    for policy in ("delete", "compact,delete"):
        tool.text("config", "alter", "--all-brokers", "--set", f"log.cleanup.policy={policy}")
        assert described(tool, "--topic", plain)["cleanup.policy"]["value"] == policy
        assert described(tool, "--topic", own)["cleanup.policy"]["value"] == "compact"
    tool.text("config", "alter", "--all-brokers", "--set", "message.max.bytes=5000")
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
    tool.text("config", "alter", "--topic", topic, "--set", "retention.ms=1000")
    tool.text("config", "alter", "--all-brokers", "--set", "log.roll.ms=2000000")
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
        tool.text("config", "alter", "--topic", topic, "--set", "segment.bytes=60000")
    client.close()


def test_the_tool_says_why_a_change_is_refused(tool, broker, topic):
    tool.text("topic", "create", topic)
    alter = ("--bootstrap", broker.address, "config", "alter", "--topic", topic)
    bad = run(*alter, "--set", "retention.ms=soon")
    assert bad.code == 64
    assert "INVALID_CONFIG: Invalid value soon for configuration retention.ms" in bad.errors
    assert "nothing to change" in run(*alter).errors
    assert "expected NAME=VALUE" in run(*alter, "--set", "retention.ms").errors
    unknown = run("--bootstrap", broker.address, "config", "describe", "--topic", "nowhere")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in unknown.errors
    assert "would change" in tool.text(*alter[2:], "--set", "retention.ms=5", "--validate-only")
    assert described(tool, "--topic", topic)["retention.ms"]["source"] == "default"


def test_a_list_grows_and_shrinks(tool, topic):
    tool.text("topic", "create", topic)
    for operation, value, left in [
        ("--append", "compact", "delete,compact"),
        ("--subtract", "delete", "compact"),
        ("--set", "delete", "delete"),
    ]:
        tool.text("config", "alter", "--topic", topic, operation, f"cleanup.policy={value}")
        assert described(tool, "--topic", topic)["cleanup.policy"]["value"] == left


def test_settings_are_explained_without_a_broker():
    topic = run("config", "explain", "retention.ms").output
    assert "of a topic" in topic and "604800000" in topic and "log.retention.hours" in topic
    assert "while the broker runs" in run("config", "explain", "log.retention.ms").output
    assert "transport.kafka.listen: " in run("config", "explain", "transport.kafka.listen").output
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
