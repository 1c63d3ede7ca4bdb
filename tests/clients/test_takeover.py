"""A data directory that Apache Kafka left after a clean stop starts under Millrace with its topics, records and groups,
and goes back to Kafka with what was written and read meanwhile."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from harness.broker import ApacheKafka, ApacheKafka39, Broker, Millrace
from harness.tool import Tool, run

PARTITIONS = 3
RECORDS = 500
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
READ_BY_GROUPS = "codec-lz4"
TOPICS = [f"codec-{codec}" for codec in CODECS] + ["idle"]

pytestmark = pytest.mark.fault


class Contents:
    """What a broker should hold, written and read through a real client."""

    def __init__(self):
        self.written: dict[tuple[str, int], list[bytes]] = {}

    def create_topics(self, broker: Broker) -> None:
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
        wait_for(lambda: admin.list_topics(timeout=30).controller_id >= 0, "a controller")
        topics = [NewTopic(name, PARTITIONS, 1, config={"retention.ms": "9999999999"})
                  for name in TOPICS]
        for made in admin.create_topics(topics).values():
            made.result(30)

    def write(self, broker: Broker, who: str) -> None:
        for codec in CODECS:
            producer = Producer({"bootstrap.servers": broker.address, "compression.type": codec,
                                 "enable.idempotence": True, "linger.ms": 20, "log_level": 2})
            for number in range(RECORDS):
                value = f"{who} {codec} {number}".encode() * 5
                place = (f"codec-{codec}", number % PARTITIONS)
                producer.produce(place[0], value, key=str(number), partition=place[1],
                                 headers={"by": who})
                self.written.setdefault(place, []).append(value)
            assert producer.flush(30) == 0

    def check(self, broker: Broker) -> None:
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "takeover",
                             "auto.offset.reset": "error", "enable.auto.commit": False,
                             "log_level": 2})
        try:
            wait_for(lambda: set(TOPICS) <= set(consumer.list_topics(timeout=30).topics), "topics")
            for (topic, partition), expected in self.written.items():
                assert read_all(consumer, topic, partition) == expected, f"{topic}-{partition}"
        finally:
            consumer.close()


class Readers:
    """A group that goes on where it was, whichever broker it asks."""

    def __init__(self, group: str, settings: dict[str, str] | None = None):
        self.group = group
        self.settings = settings or {}
        self.next = {partition: 0 for partition in range(PARTITIONS)}

    def read_on(self, broker: Broker, records: int = 100) -> None:
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": self.group,
                             "auto.offset.reset": "earliest",
                             "enable.auto.commit": False, "log_level": 2} | self.settings)
        try:
            consumer.subscribe([READ_BY_GROUPS])
            messages = []
            deadline = time.monotonic() + 60
            while len(messages) < records:
                assert time.monotonic() < deadline, f"{self.group}: {len(messages)} records came"
                messages += consumer.consume(records - len(messages), timeout=5)
            for message in messages:
                assert message.error() is None, f"{self.group}: {message.error()}"
                assert message.offset() == self.next[message.partition()], self.group
                self.next[message.partition()] += 1
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()


def groups_of(broker: Broker) -> set[str]:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    return {group.group_id for group in admin.list_consumer_groups().result(30).valid}


def wait_for(holds: Callable[[], bool], what: str) -> None:
    """A broker with ZooKeeper answers before its controller is elected and has told it of topics."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"


def bounds_of(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Asks again while a broker that has just started does not lead the partition yet."""
    found = []

    def answered() -> bool:
        try:
            found.append(consumer.get_watermark_offsets(partition, timeout=30))
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
        return bool(found)

    wait_for(answered, f"a leader of {partition}")
    return found[0]


def read_all(consumer: Consumer, topic: str, partition: int) -> list[bytes]:
    low, high = bounds_of(consumer, TopicPartition(topic, partition))
    consumer.assign([TopicPartition(topic, partition, low)])
    values = []
    while len(values) < high - low:
        messages = consumer.consume(high - low - len(values), timeout=30)
        assert messages, f"only {len(values)} of {high - low} records came"
        for message in messages:
            assert message.error() is None, message.error()
            values.append(message.value())
    return values


def retention_of_topics(broker: Broker) -> dict[str, tuple[str, str]]:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in TOPICS]
    settings = {
        resource.name: answer.result(30)["retention.ms"].value
        for resource, answer in admin.describe_configs(resources).items()
    }
    return {name: settings[name] for name in TOPICS}


def hand_over(leaving: Broker, coming: Broker) -> None:
    code, _ = leaving.stop()
    assert code == leaving.stop_code, leaving.log_tail()
    coming.start()


@pytest.mark.parametrize("kafka_kind", [ApacheKafka, ApacheKafka39])
def test_there_and_back_again(tmp_path, kafka_kind):
    at_once = {"group.initial.rebalance.delay.ms": 0}
    kafka = kafka_kind(tmp_path, at_once)
    millrace = Millrace(tmp_path, at_once, {"broker.id": 1})
    contents = Contents()
    groups = [Readers("readers"),
              Readers("static", {"group.instance.id": "one", "session.timeout.ms": "120000"})]
    if kafka_kind is ApacheKafka:
        groups.append(Readers("new", {"group.protocol": "consumer"}))

    def read_on(broker: Broker) -> None:
        for group in groups:
            group.read_on(broker)
        assert {group.group for group in groups} <= groups_of(broker)

    try:
        kafka.start()
        contents.create_topics(kafka)
        contents.write(kafka, "kafka")
        settings = retention_of_topics(kafka)
        read_on(kafka)

        hand_over(kafka, millrace)
        contents.check(millrace)
        read_on(millrace)
        if kafka_kind is ApacheKafka:
            assert retention_of_topics(millrace) == settings
        else:  # settings are in ZooKeeper: nothing may be deleted for want of them
            assert set(retention_of_topics(millrace).values()) == {"-1"}
        contents.write(millrace, "millrace")
        contents.check(millrace)
        read_on(millrace)

        hand_over(millrace, kafka)
        contents.check(kafka)
        assert retention_of_topics(kafka) == settings
        read_on(kafka)
        contents.write(kafka, "kafka again")

        hand_over(kafka, millrace)
        contents.check(millrace)
        read_on(millrace)
        millrace.end()
    finally:
        kafka.close()
        millrace.close()


def our_tool_works(broker: Broker) -> None:
    """Kafka's protocol is what its verbs speak: the same test of each runs with `--broker kafka`; this is one round."""
    tool = Tool(broker.address)
    tool.text("topic", "create", "tool", "--partitions", 2, "--config", "retention.ms=60000")
    send = ("-b", broker.address, "produce", "tool", "--key-separator", "=", "--header", "h=1")
    # A node that starts gives out no producer ids for a moment.
    wait_for(lambda: run(*send, stdin="a=1\nb=2\n").code == 0, "a producer id")
    assert sorted(tool.text("consume", "tool", "--keys", "--headers").splitlines()) == ["h=1\ta\t1", "h=1\tb\t2"]
    # Nor is there a coordinator of groups, until somebody asks for one.
    tool.text("group", "reset", "tool", "--to-earliest", "--topic", "tool", "--execute")
    (group,) = tool.json_lines("group", "describe", "tool")
    assert sum(one["lag"] for one in group["partitions"]) == 2
    assert "tool" in tool.text("group", "list")
    tool.text("group", "delete", "tool", "--execute")
    tool.text("config", "set", "--topic", "tool", "retention.ms=70000")
    assert "70000" in tool.text("config", "get", "--topic", "tool")
    tool.text("topic", "alter", "tool", "--partitions", 3)
    refused = run("-b", broker.address, "topic", "trim", "tool", "--before", 99)
    assert refused.code == 64 and "tool-0 ends at offset" in refused.errors
    tool.text("topic", "trim", "tool", "--before", "end")
    assert tool.text("consume", "tool") == ""
    (status,) = tool.json_lines("cluster", "status")
    assert status["balance"] == "none" and [one["id"] for one in status["brokers"]] == [1]
    assert "move nothing by themselves" in tool.text("cluster", "balance")
    drained = run("-b", broker.address, "cluster", "drain", 1)
    assert drained.code == 1 and "only Millrace's are drained so" in drained.errors
    assert [one["broker"] for one in tool.json_lines("log", "dirs")[0]["log_dirs"]] == [1]
    tool.text("topic", "delete", "tool")


def test_our_tool_works_with_kafka_whose_broker_id_stays(tmp_path):
    kafka = ApacheKafka(tmp_path)
    try:
        kafka.start()
        our_tool_works(kafka)
        kafka.stop()
    finally:
        kafka.close()
    millrace = Millrace(tmp_path, settings={"broker.id": 2})
    with pytest.raises(AssertionError, match="set broker.id to 1"):
        millrace.start()
