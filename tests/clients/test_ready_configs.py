"""The ready configurations of configs/: each starts a broker, which then has the topics that the file
declares, and is used as the file says."""

import contextlib
import struct
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from harness.broker import PREFIX, Millrace
from harness.client import DEADLINE_SECONDS
from harness.http import Http
from harness.paths import SOURCE
from harness.tool import Tool, run
from harness.zookeeper import ZooKeeper

pytestmark = pytest.mark.millrace

CONFIGS = SOURCE / "configs"
EXAMPLES = PREFIX / "tests" / "plugins" / "examples"
"""Those of the SDK, built."""

LZ4, ZSTD = 3, 4
ATTRIBUTES = struct.Struct(">21xh")
"""Of a stored batch: the codec is in its lowest bits."""


MARKED = {"event-sourcing": "plugins"}
"""An option that the file's reader takes the mark away from, once there is what it needs."""


def without_mark(file: Path, option: str) -> str:
    text = file.read_text()
    assert text.count(f"\n#{option} = ") == 1
    return text.replace(f"\n#{option} = ", f"\n{option} = ")


class Ready(Millrace):
    """A broker of `name`.toml. What is elsewhere in a test is set after it."""

    def __init__(self, folder: Path, name: str, settings: dict[str, object] | None = None):
        super().__init__(folder, settings=settings)
        self.file = CONFIGS / f"{name}.toml"
        if name in MARKED:
            self.file = folder / self.file.name
            self.file.write_text(without_mark(CONFIGS / self.file.name, MARKED[name]))

    def command(self) -> list[str]:
        daemon, *sets = super().command()
        return [daemon, "--config", str(self.file), *sets]


def declared(broker: Ready) -> dict[str, dict[str, object]]:
    return tomllib.loads(broker.file.read_text()).get("topic", {})


def assert_has_its_topics(broker: Ready) -> None:
    tool = Tool(broker.address)
    for name, wanted in declared(broker).items():
        topic = tool.json_lines("topic", "describe", name)[0]
        assert len(topic["partitions"]) == wanted.pop("partitions", 1), name
        configs = tool.json_lines("config", "describe", "--topic", name)[0]["configs"]
        own = {config["name"]: config["value"] for config in configs if config["source"] == "topic"}
        # Whoever keeps state in a topic may set more.
        assert own.items() >= {key: str(value) for key, value in wanted.items()}.items(), name


def consumed(broker: Millrace, topic: str, count: int) -> list[str]:
    """The values of a topic once there are `count`; streams take their time."""
    tool = Tool(broker.address)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        values = tool.text("consume", topic).splitlines()
        if len(values) >= count or time.monotonic() > deadline:
            return sorted(values)


def send(broker: Millrace, topic: str, *lines: str) -> None:
    Tool(broker.address).text("produce", topic, "--key-separator", "=", stdin="\n".join(lines) + "\n")


def codec_of_first_batch(broker: Millrace, topic: str) -> int:
    logs = (broker.folder / "data").glob(f"{topic}-[0-9]*/*.log")
    filled = next(log for log in logs if log.stat().st_size > 0)
    return ATTRIBUTES.unpack_from(filled.read_bytes())[0] & 7


def refused(broker: Millrace, *words: str) -> str:
    outcome = run("--bootstrap", broker.address, *words)
    assert outcome.code != 0, outcome.output
    return outcome.errors


def use_as_it_comes(broker: Ready) -> None:
    Tool(broker.address).text("topic", "create", "greetings")
    send(broker, "greetings", "a=hello")
    assert consumed(broker, "greetings", 1) == ["hello"]


def use_to_develop(broker: Ready) -> None:
    """What is written to is there, and a group begins at once."""
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce("made-by-writing", b"hello")
    assert producer.flush(DEADLINE_SECONDS) == 0
    described = Tool(broker.address).json_lines("topic", "describe", "made-by-writing")[0]
    assert len(described["partitions"]) == 3
    with members(broker, "team", "made-by-writing", 1) as (one,):
        message = one.poll(DEADLINE_SECONDS)
        assert message.value() == b"hello"


def use_in_memory(broker: Ready) -> None:
    use_as_it_comes(broker)
    broker.end()
    broker.start()
    assert consumed(broker, "greetings", 0) == []


@contextlib.contextmanager
def members(broker: Millrace, group: str, topic: str, count: int) -> Iterator[list[Consumer]]:
    config = {
        "bootstrap.servers": broker.address,
        "group.id": group,
        "auto.offset.reset": "earliest",
    }
    all_members = [Consumer(config) for _ in range(count)]
    for one in all_members:
        one.subscribe([topic])
    try:
        yield all_members
    finally:
        for one in all_members:
            one.close()


def use_as_queue(broker: Ready) -> None:
    """Two members of a group share the work: each message goes to one of them. A slip in a topic's
    name is an error."""
    work = [f"order-{n}" for n in range(60)]
    send(broker, "orders", *(f"{n}={order}" for n, order in enumerate(work)))
    done: list[list[str]] = [[], []]
    with members(broker, "shipping", "orders", 2) as team:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sum(map(len, done)) < len(work) and time.monotonic() < deadline:
            for one, its_work in zip(team, done, strict=True):
                message = one.poll(0.05)
                if message is not None:
                    assert message.error() is None
                    its_work.append(message.value().decode())
        assert sorted(done[0] + done[1]) == sorted(work)
        assert done[0] and done[1]
        for one in team:
            one.commit(asynchronous=False)
    group = Tool(broker.address).json_lines("group", "describe", "shipping")[0]
    assert {partition["lag"] for partition in group["partitions"]} <= {0, None}
    assert "UNKNOWN_TOPIC_OR_PARTITION" in refused(broker, "produce", "ordres")


def use_for_activity(broker: Ready) -> None:
    """Stored as lz4, however it was sent."""
    send(broker, "clicks", *(f"visitor-{n}={'page ' * 50}" for n in range(200)))
    assert len(consumed(broker, "clicks", 200)) == 200
    assert codec_of_first_batch(broker, "clicks") == LZ4


def use_for_audit(broker: Ready) -> None:
    """The time is the broker's, whatever the sender says; nobody deletes the topic."""
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "enable.idempotence": True})
    before = int(time.time() * 1000)
    producer.produce("audit", b"opened the door", key=b"alice", timestamp=86_400_000)
    assert producer.flush(DEADLINE_SECONDS) == 0
    record = Tool(broker.address).json_lines("consume", "audit")[0]
    assert before <= record["timestamp"] <= int(time.time() * 1000)
    assert "TOPIC_DELETION_DISABLED" in refused(broker, "topic", "delete", "audit")


def use_for_logs(broker: Ready) -> None:
    """Errors come into a topic of their own; what is not JSON stops nothing."""
    lines = ['{"level":"info","message":"up"}', "not JSON", '{"level":"error","message":"disk full"}']
    send(broker, "logs", *(f"web1={line}" for line in lines))
    assert consumed(broker, "logs.errors", 1) == [lines[2]]
    assert codec_of_first_batch(broker, "logs") == ZSTD


def use_for_events(broker: Ready) -> None:
    """A command that was decided for an older version is refused; the account outlives a restart."""
    account = "/admin/aggregates/accounts/alice"

    def say(command: str, version: int):
        body = {"command": command, "headers": {"millrace-expected-version": version}}
        return Http(broker.http_address()).ask("POST", account, body)

    assert say("deposit 500", 0).json() == {"answer": "500", "headers": {"millrace-version": "1"}}
    assert say("withdraw 200", 0).status == 409
    assert say("withdraw 200", 1).json()["answer"] == "300"
    broker.end()
    broker.start()
    assert say("withdraw 300", 2).json()["answer"] == "0"
    assert consumed(broker, "accounts", 3) == sorted(["500", "-200", "-300"])


def use_for_streams(broker: Ready) -> None:
    def order(state: str, country: str) -> str:
        head = f'"state":"{state}","country":"{country}","customer":{{"mail":"x@example.com"}}'
        lines = '[{"article":"a1","count":1},{"article":"b2","count":3}]'
        return f'{{{head},"lines":{lines}}}'

    paid = order("paid", "DE")
    send(broker, "orders", f"1={paid}", f"1={paid}", f"2={order('open', 'DE')}", "3=not JSON")
    send(broker, "orders", f"4={order('paid', 'FR')}")
    assert len(consumed(broker, "mails", 2)) == 2
    without_mail = paid.replace("x@example.com", "***")
    assert consumed(broker, "orders.domestic", 1) == [without_mail]
    assert len(consumed(broker, "orders.abroad", 1)) == 1
    assert len(consumed(broker, "orders.paid", 2)) == 2
    assert consumed(broker, "orders.bad", 1) == ["not JSON"]
    lines = consumed(broker, "lines", 4)
    assert lines == sorted(['{"article":"a1","count":1}', '{"article":"b2","count":3}'] * 2)


USES: dict[str, Callable[[Ready], None]] = {
    "millrace": use_as_it_comes,
    "memory": use_in_memory,
    "dev": use_to_develop,
    "messaging": use_as_queue,
    "activity": use_for_activity,
    "audit": use_for_audit,
    "logs": use_for_logs,
    "event-sourcing": use_for_events,
    "streams": use_for_streams,
}
WITH_ZOOKEEPER = {"cluster", "zookeeper"}
MORE_SETTINGS: dict[str, dict[str, object]] = {
    "event-sourcing": {"plugins.path": f'["{EXAMPLES}"]'},
}


def test_every_file_is_used():
    assert {file.stem for file in CONFIGS.glob("*.toml")} == set(USES) | WITH_ZOOKEEPER


@pytest.mark.parametrize("name", USES)
def test_is_started_and_used(name, tmp_path):
    broker = Ready(tmp_path / "broker", name, MORE_SETTINGS.get(name))
    try:
        broker.start()
        assert_has_its_topics(broker)
        USES[name](broker)
        # A second start finds the topics as they are declared.
        assert "differs from its declaration" not in broker.log_text()
        broker.end()
    finally:
        broker.close()


@pytest.fixture
def zookeeper(tmp_path):
    one = ZooKeeper(tmp_path / "zookeeper").start()
    yield one
    one.close()


def test_zookeeper_is_started_and_used(zookeeper, tmp_path):
    broker = Ready(tmp_path / "broker", "zookeeper", {"coordination.connect": f"{zookeeper.address}/one"})
    try:
        use_as_it_comes(broker.start())
        broker.end()
    finally:
        broker.close()


def test_a_cluster_makes_its_topics_once_there_are_brokers_for_them(zookeeper, tmp_path):
    brokers = []
    try:
        for number in (1, 2, 3):
            broker = Ready(
                tmp_path / f"broker-{number}",
                "cluster",
                {
                    "broker.id": number,
                    "broker.rack": f"r{number}",
                    "coordination.connect": f"{zookeeper.address}/three",
                },
            )
            brokers.append(broker)
            broker.start()
            if number == 1:
                broker.wait_for_log_line("once there are brokers for its replicas", "topic=orders")
        wait_for_topic(brokers[0], "orders")
        for broker in brokers:
            assert_has_its_topics(broker)
        partitions = Tool(brokers[2].address).json_lines("topic", "describe", "orders")[0]["partitions"]
        assert all(sorted(one["replicas"]) == [1, 2, 3] for one in partitions)
        send(brokers[0], "orders", "1=hello")
        assert consumed(brokers[2], "orders", 1) == ["hello"]
        for broker in brokers:
            broker.end()
    finally:
        for broker in brokers:
            broker.close()


def wait_for_topic(broker: Millrace, topic: str) -> None:
    tool = Tool(broker.address)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while topic not in (one["topic"] for one in tool.json_lines("topic", "list")[0]["topics"]):
        assert time.monotonic() < deadline, broker.log_tail()
