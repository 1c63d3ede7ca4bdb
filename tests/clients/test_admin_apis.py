"""What operators ask of a broker, by Apache Kafka's tools, by librdkafka and by our own tool."""

import concurrent.futures
import contextlib
import json
import re
import struct
import threading

import confluent_kafka as ck
import pytest
from confluent_kafka import KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from harness import kafka_tools
from harness.client import DEADLINE_SECONDS, UNKNOWN_TOPIC_OR_PARTITION
from harness.confluent import Confluent
from harness.records import Record
from harness.tool import Tool
from harness.tool import run as run_tool
from harness.wire import RawConnection

MANY_PARTITIONS = 1000
NOT_LEADER_OR_FOLLOWER = 6
FETCH_WAIT_MS = 60_000


@pytest.fixture
def admin(broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address})


@pytest.fixture
def librdkafka(broker):
    client = Confluent(broker.address)
    yield client
    client.close()


def only(futures: dict):
    (future,) = futures.values()
    return future.result(timeout=DEADLINE_SECONDS)


def code_of(futures: dict) -> int:
    with pytest.raises(ck.KafkaException) as refused:
        only(futures)
    return refused.value.args[0].code()


# ---- Apache Kafka's tools ----


def test_kafka_topics_makes_grows_and_shows_a_topic(broker, topic):
    tool = "TopicCommand"
    kafka_tools.output(tool, broker.address, "--create", "--topic", topic, "--partitions", 2)
    kafka_tools.output(tool, broker.address, "--alter", "--topic", topic, "--partitions", 4)
    shown = kafka_tools.output(tool, broker.address, "--describe", "--topic", topic)
    assert "PartitionCount: 4" in shown
    assert len(re.findall(r"Partition: \d\tLeader: 1\tReplicas: 1\tIsr: 1", shown)) == 4
    refused = kafka_tools.run(
        tool, broker.address, "--alter", "--topic", topic, "--partitions", 3
    )
    assert "would not be an increase" in refused.stdout + refused.stderr


def test_kafka_delete_records_and_get_offsets(broker, topic, librdkafka, tmp_path):
    librdkafka.create_topic(topic, 2)
    for partition in (0, 1):
        sent = [Record(b"k", b"%d" % n, partition=partition) for n in range(20)]
        librdkafka.produce(topic, sent)
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": 0, "offset": 7},
                    {"topic": topic, "partition": 1, "offset": -1},
                ],
            }
        )
    )
    done = kafka_tools.output(
        "DeleteRecordsCommand", broker.address, "--offset-json-file", wanted
    )
    assert f"{topic}-0\tlow_watermark: 7" in done
    assert f"{topic}-1\tlow_watermark: 20" in done
    earliest = kafka_tools.output(
        "GetOffsetShell", broker.address, "--topic", topic, "--time", "-2"
    )
    assert earliest.split() == [f"{topic}:0:7", f"{topic}:1:20"]


def test_kafka_log_dirs_tells_sizes(broker, topic, librdkafka):
    librdkafka.create_topic(topic, 2)
    librdkafka.produce(topic, [Record(b"k", b"v" * 1000, partition=1)])
    shown = kafka_tools.output(
        "LogDirsCommand", broker.address, "--describe", "--topic-list", topic
    )
    (described,) = json.loads(shown.splitlines()[-1])["brokers"]
    (folder,) = described["logDirs"]
    assert folder["logDir"] == str(broker.folder / "data")
    sizes = {one["partition"]: one["size"] for one in folder["partitions"]}
    assert sizes[f"{topic}-0"] == 0
    segment = broker.folder / "data" / f"{topic}-1" / f"{0:020}.log"
    assert sizes[f"{topic}-1"] == segment.stat().st_size > 1000


def test_kafka_transactions_describes_producers(broker, topic, librdkafka):
    librdkafka.create_topic(topic, 1)
    producer = ck.Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    for n in range(3):
        producer.produce(topic, b"%d" % n, partition=0)
        assert producer.flush(DEADLINE_SECONDS) == 0
    shown = kafka_tools.output(
        *("TransactionsCommand", broker.address),
        *("describe-producers", "--topic", topic, "--partition", 0),
    )
    header, row = (line.split() for line in shown.strip().splitlines())
    described = dict(zip(header, row, strict=True))
    assert described["LastSequence"] == "2"
    assert described["ProducerEpoch"] == "0"
    assert described["CurrentTransactionStartOffset"] == "None"


# ---- librdkafka ----


def test_the_cluster_is_described(admin, broker):
    described = admin.describe_cluster(include_authorized_operations=True).result(DEADLINE_SECONDS)
    assert [node.id for node in described.nodes] == [1]
    assert described.controller.id == 1
    assert f"{described.nodes[0].host}:{described.nodes[0].port}" == broker.address
    assert len(described.authorized_operations) == 7


def test_topics_are_described(admin, topic):
    only(admin.create_topics([NewTopic(topic, 3, 1)]))
    described = only(
        admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)
    )
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert len(described.authorized_operations) == 8


@pytest.mark.parametrize(
    "wanted, code",
    [
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("a/b", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("ä", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("none", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("copies", 1, 2), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("nowhere", 1, replica_assignment=[[9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("setting", 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
    ],
    ids=lambda value: value.topic[:8] if isinstance(value, NewTopic) else "",
)
def test_a_topic_that_cannot_be_is_refused(admin, wanted, code):
    assert code_of(admin.create_topics([wanted])) == code


def test_names_that_differ_in_dots_and_underscores_collide(admin):
    only(admin.create_topics([NewTopic("dots.and_lines", 1, 1)]))
    collides = NewTopic("dots_and.lines", 1, 1)
    assert code_of(admin.create_topics([collides])) == KafkaError.TOPIC_EXCEPTION


def test_growth_that_cannot_be_is_refused(admin, topic):
    only(admin.create_topics([NewTopic(topic, 2, 1)]))
    for wanted, code in (
        (NewPartitions(topic, 2), KafkaError.INVALID_PARTITIONS),
        (NewPartitions(topic, 1), KafkaError.INVALID_PARTITIONS),
        (NewPartitions(topic, 3, [[9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(topic + "-none", 3), KafkaError.UNKNOWN_TOPIC_OR_PART),
    ):
        assert code_of(admin.create_partitions([wanted])) == code
    only(admin.create_partitions([NewPartitions(topic, 3, [[1]])], validate_only=True))
    assert len(admin.list_topics(topic).topics[topic].partitions) == 2


def test_records_of_a_compacted_topic_are_not_deleted(admin, topic):
    only(admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})]))
    assert code_of(admin.delete_records([TopicPartition(topic, 0, 0)])) == (
        KafkaError.POLICY_VIOLATION
    )


def test_a_waiting_fetch_is_answered_when_its_topic_is_deleted(broker, admin, topic, librdkafka):
    librdkafka.create_topic(topic, 1)
    with RawConnection(broker.address, timeout=FETCH_WAIT_MS / 2000) as reader:
        reader.send_fetch(topic, 0, 0, wait_ms=FETCH_WAIT_MS)
        only(admin.delete_topics([topic]))
        answer = reader.receive_frame()
    at = 4 + 4 + 4 + 2 + len(topic) + 4  # correlation, throttle; one topic, its name; one partition
    _, error = struct.unpack_from(">ih", answer, at)
    assert error in (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER)


def test_a_thousand_partitions(own_broker, topic):
    admin = AdminClient({"bootstrap.servers": own_broker.address})
    Confluent(own_broker.address).create_topic(topic, MANY_PARTITIONS)
    described = admin.list_topics(topic, timeout=DEADLINE_SECONDS).topics[topic]
    assert len(described.partitions) == MANY_PARTITIONS
    ends = admin.list_offsets(
        {TopicPartition(topic, n): OffsetSpec.latest() for n in range(MANY_PARTITIONS)}
    )
    assert {end.result(DEADLINE_SECONDS).offset for end in ends.values()} == {0}
    only(admin.delete_topics([topic], request_timeout=60))


# ---- across a crash ----


@pytest.mark.millrace
def test_deleted_records_stay_deleted_and_offsets_go_on(own_broker, topic):
    """R03: records are deleted while others arrive, and the broker is killed in between. Apache
    Kafka writes log starts once a minute, and may bring deleted records back."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    low = 0
    offsets = []
    for _ in range(3):
        with deleting_all(own_broker.address, topic) as low_watermarks:
            offsets += produced_offsets(own_broker.address, topic, 200)
        assert low_watermarks == sorted(low_watermarks) and low_watermarks[0] >= low
        low = low_watermarks[-1]
        own_broker.kill()
        own_broker.start()
        client.wait_until_ready(topic, 1)
        first, end = client.bounds(topic, 0)
        assert low <= first <= end
        assert end > offsets[-1]
    assert offsets == sorted(set(offsets))


@contextlib.contextmanager
def deleting_all(address: str, topic: str):
    """Deletes what there is, over and over until the block ends; yields the answers."""
    admin = AdminClient({"bootstrap.servers": address})
    low_watermarks = []
    ended = threading.Event()

    def delete() -> None:
        while not ended.is_set():
            deleted = only(admin.delete_records([TopicPartition(topic, 0, -1)]))
            low_watermarks.append(deleted.low_watermark)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(delete)
        try:
            yield low_watermarks
        finally:
            ended.set()
        deleting.result(DEADLINE_SECONDS)


def produced_offsets(address: str, topic: str, count: int) -> list[int]:
    """Of records that are sent one by one, so that deletions come between them."""
    offsets = []
    producer = ck.Producer({"bootstrap.servers": address, "linger.ms": 0})
    for n in range(count):
        producer.produce(
            topic, b"%d" % n, partition=0, on_delivery=lambda _, sent: offsets.append(sent.offset())
        )
        assert producer.flush(DEADLINE_SECONDS) == 0
    return offsets


# ---- our own tool ----


@pytest.mark.millrace
def test_our_tool_grows_trims_and_describes(broker, topic):
    tool = Tool(broker.address)
    tool.text("topic", "create", topic, "--partitions", 1)
    tool.text("produce", topic, stdin="a\nb\nc\n")
    assert tool.json_lines("topic", "alter", topic, "--partitions", 2) == [
        {"topic": topic, "partitions": 2}
    ]
    trimmed = tool.json_lines("topic", "trim", topic, "--before", 2, "--partition", 0)
    assert trimmed[0]["partitions"] == [{"partition": 0, "first_offset": 2}]
    assert tool.text("consume", topic) == "c\n"
    (cluster,) = tool.json_lines("cluster", "describe")
    assert cluster["brokers"][0] == {
        "id": 1,
        "address": broker.address,
        "rack": "",
        "controller": True,
    }
    (logs,) = tool.json_lines("log", "dirs")
    (folder,) = logs["log_dirs"]
    sizes = {(one["topic"], one["partition"]): one["bytes"] for one in folder["partitions"]}
    assert sizes[topic, 0] > 0 and sizes[topic, 1] == 0
    assert 0 < folder["bytes_usable"] < folder["bytes_total"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["topic", "alter", "no-such", "--partitions", 2], "UNKNOWN_TOPIC_OR_PARTITION"),
        (["topic", "trim", "x", "--before", "soon"], "expected an offset, or end"),
        (["topic", "trim", "no-such", "--before", "end"], "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
@pytest.mark.millrace
def test_a_mistake_is_explained(broker, words, said):
    outcome = run_tool("-b", broker.address, *words)
    assert outcome.code != 0 and outcome.output == ""
    assert said in outcome.errors
