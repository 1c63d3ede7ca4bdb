"""Settings that a group has of its own (KIP-848): through our tool and Kafka's, in effect from the
next heartbeat on, within the broker's bounds, over restarts."""

import time

import pytest

from harness import groups
from harness.groups import ask
from harness.members import FAST, SESSION_MS, SETTLE_SECONDS
from harness.tool import Tool, run
from harness.wire import RawConnection
from test_configs import described, kafka_configs, sources

pytestmark = pytest.mark.millrace

TOPIC = "settings"
UNKNOWN_MEMBER = 25
INTERVAL_MS = FAST["group.consumer.heartbeat.interval.ms"]


@pytest.fixture
def connection(fast_broker):
    Tool(fast_broker.address).text("topic", "create", TOPIC, "--if-not-exists")
    with RawConnection(fast_broker.address) as made:
        yield made


@pytest.fixture
def group(request, connection) -> str:
    name = request.node.name
    groups.offsets_when_loaded(connection, name, TOPIC, [0])
    return name


def join(connection: RawConnection, group: str, member: str = "m1") -> groups.Beat:
    question = groups.consumer_heartbeat(
        group, member, 0, topics=[TOPIC], owned={}, rebalance_ms=5000
    )
    beat = ask(connection, question)
    assert beat.error == 0, beat
    return beat


def beat_on(connection: RawConnection, group: str, beat: groups.Beat) -> groups.Beat:
    return ask(connection, groups.consumer_heartbeat(group, beat.member, beat.epoch))


def test_a_change_counts_from_the_next_heartbeat_on(fast_broker, connection, group):
    tool = Tool(fast_broker.address)
    for name in (group, group + "-other"):  # while the tool starts nobody beats
        tool.text("config", "alter", "--group", name, "--set", "consumer.session.timeout.ms=60000")
    beat = join(connection, group)
    assert beat.interval_ms == INTERVAL_MS
    tool.text("config", "alter", "--group", group, "--set", "consumer.heartbeat.interval.ms=500")
    beat = beat_on(connection, group, beat)
    assert beat.interval_ms == 500
    other = join(connection, group + "-other")
    assert other.interval_ms == INTERVAL_MS, "of other groups nothing has changed"
    tool.text("config", "alter", "--group", group, "--delete", "consumer.heartbeat.interval.ms")
    assert beat_on(connection, group, beat).interval_ms == INTERVAL_MS


def test_its_session_timeout_is_the_groups_own(fast_broker, connection, group):
    """A silent member of a group without one is out by the broker's; it stays where the group's is
    longer."""
    tool = Tool(fast_broker.address)
    tool.text("config", "alter", "--group", group, "--set", "consumer.session.timeout.ms=60000")
    other_group = group + "-other"
    groups.offsets_when_loaded(connection, other_group, TOPIC, [0])
    mine, other = join(connection, group), join(connection, other_group)
    deadline = time.monotonic() + SETTLE_SECONDS
    while state_of(tool, other_group) != "Empty":
        assert time.monotonic() < deadline, "it is still a member"
    assert beat_on(connection, other_group, other).error == UNKNOWN_MEMBER
    assert beat_on(connection, group, mine).error == 0


def state_of(tool: Tool, group: str) -> str:
    (listed,) = tool.json_lines("group", "list")
    return next(one["state"] for one in listed["groups"] if one["group"] == group)


def test_both_tools_show_change_and_refuse(fast_broker, group):
    tool = Tool(fast_broker.address)
    of_group = ("--entity-type", "groups", "--entity-name", group)
    before = described(tool, "--group", group)["consumer.session.timeout.ms"]
    assert sources(before)[0] == ("group.consumer.session.timeout.ms", str(SESSION_MS), "file")
    kafka_configs(
        fast_broker.address, *of_group, "--alter", "--add-config", "consumer.session.timeout.ms=9000"
    )
    after = described(tool, "--group", group)["consumer.session.timeout.ms"]
    assert sources(after)[0] == ("consumer.session.timeout.ms", "9000", "group")
    shown = kafka_configs(fast_broker.address, *of_group, "--describe")
    assert "consumer.session.timeout.ms=9000" in shown
    assert "heartbeat" not in shown, "what nobody has set for the group is not shown"
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=9000" in shown
    alter = ("--bootstrap", fast_broker.address, "config", "alter", "--group", group, "--set")
    for change, words in (
        ("consumer.session.timeout.ms=999", "must be in the range 1000 to 60000 inclusive."),
        ("consumer.session.timeout.ms=60001", "must be in the range 1000 to 60000 inclusive."),
        ("consumer.heartbeat.interval.ms=199", "must be in the range 200 to 15000 inclusive."),
        ("consumer.heartbeat.interval.ms=9000", "must be greater than consumer.heartbeat.interval.ms"),
        ("consumer.session.timeout.ms=soon", "Invalid value soon"),
        ("consumer.size=3", "Unknown group config name: consumer.size"),
    ):
        refused = run(*alter, change)
        assert refused.code == 64 and words in refused.errors, (change, refused)
    kafka_configs(
        fast_broker.address, *of_group, "--alter", "--delete-config", "consumer.session.timeout.ms"
    )
    assert described(tool, "--group", group)["consumer.session.timeout.ms"] == before


def test_they_outlive_the_broker(own_fast_broker):
    tool = Tool(own_fast_broker.address)
    for name in ("readers", "../odd name%"):
        tool.text("config", "alter", "--group", name, "--set", "consumer.session.timeout.ms=9000")
    own_fast_broker.kill()
    own_fast_broker.start()
    for name in ("readers", "../odd name%"):
        assert described(tool, "--group", name)["consumer.session.timeout.ms"]["value"] == "9000"
