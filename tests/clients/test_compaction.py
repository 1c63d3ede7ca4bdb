"""Compacted topics: each key's newest value is there for every reader, at the offset that it always
had; what is superseded goes, by the broker's own hand, and what groups commit takes bounded room."""

import contextlib
import random
import time

import confluent_kafka as ck
import pytest

from conftest import running
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.fleet import Java
from harness.http import OF_COMPACTED_PARTITIONS, Http
from harness.records import Record
from harness.tool import Tool

pytestmark = pytest.mark.millrace  # Apache Kafka takes no segments as small as these

KEYS, RECORDS = 40, 3000
TOMBSTONE_SECONDS = 10
SOON = {
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 0,
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "20000", "delete.retention.ms": "0"}


@pytest.fixture(scope="module")
def broker(broker_kind, tmp_path_factory):
    own = broker_kind(tmp_path_factory.mktemp("compaction"), SOON)
    with running(own):
        yield own


def folder_bytes(broker, partition: str) -> int:
    """Of what is there while it is looked: files come and go."""
    sizes = 0
    for file in (broker.folder / "data" / partition).glob("*.log"):
        with contextlib.suppress(FileNotFoundError):
            sizes += file.stat().st_size
    return sizes


def wait_until_smaller(broker, partition: str, limit: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (size := folder_bytes(broker, partition)) > limit:
        assert time.monotonic() < deadline, f"{partition} has {size} bytes"


def present(records: list[Record]) -> dict[bytes, bytes]:
    return {one.key: one.value for one in records if one.value is not None}


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_reader_finds_the_newest_of_each_key(broker, topic, codec):
    chance = random.Random(7)
    writer = Confluent(broker.address)
    writer.create_topic(topic, 1, COMPACTED)
    sent = []
    for at in range(RECORDS):
        value = None if chance.random() < 0.1 else b"%d-%s" % (at, bytes(chance.randrange(100)))
        sent.append(Record(b"key-%d" % chance.randrange(KEYS), value, partition=0))
    # Few at a time, so that a batch has neither one record nor all.
    for first in range(0, RECORDS, 500):
        writer.produce(topic, sent[first : first + 500], codec=codec, linger_ms=2)
    latest = {record.key: record.value for record in sent}
    # What is newest stands where nothing can be compacted yet: all that is asked for is before it.
    for _ in range(3):
        writer.produce(topic, [Record(b"filler", bytes(15_000), partition=0)])
    wait_until_smaller(broker, f"{topic}-0", 60_000)
    assert Http(broker.http_address()).metrics().names >= OF_COMPACTED_PARTITIONS
    deadline = time.monotonic() + DEADLINE_SECONDS
    for client in (writer, Java(broker.address)):
        while True:
            read = [one for one in client.read(topic, 0) if one.key != b"filler"]
            if len(read) <= KEYS or time.monotonic() > deadline:
                break
        assert len(read) == len({one.key for one in read}), f"{client.name}: a key is there twice"
        assert present(read) == {key: value for key, value in latest.items() if value is not None}
        if client is not writer:
            client.close()
    assert writer.bounds(topic, 0) == (0, RECORDS + 3)
    writer.close()


def test_K09_a_topic_stays_compacted_whatever_the_default_is(broker, topic):
    tool = Tool(broker.address)
    writer = Confluent(broker.address)
    writer.create_topic(topic, 1, COMPACTED)
    old = 10 * 24 * 3600 * 1000  # of 1970: retention would take it at once
    sent = [
        Record(b"key-%d" % (at % KEYS), b"value-%d" % at, partition=0, timestamp=old + at)
        for at in range(RECORDS)
    ]
    try:
        for policy in ("delete", "compact,delete"):
            tool.text("config", "set", "--broker-default", f"log.cleanup.policy={policy}")
            writer.produce(topic, sent)
            for _ in range(3):
                writer.produce(topic, [Record(b"filler", bytes(15_000), partition=0)])
            wait_until_smaller(broker, f"{topic}-0", 60_000)
            assert writer.bounds(topic, 0)[0] == 0
            read = [one for one in writer.read(topic, 0) if one.key != b"filler"]
            assert present(read) == {one.key: one.value for one in sent}
    finally:
        tool.text("config", "set", "--broker-default", "--unset", "log.cleanup.policy")
    writer.close()


def test_offsets_of_groups_take_bounded_room(broker, topic):
    writer = Confluent(broker.address)
    writer.create_topic(topic, 1)
    consumer = ck.Consumer({"bootstrap.servers": broker.address, "group.id": f"{topic}-group"})
    place = ck.TopicPartition(topic, 0, 1)
    consumer.commit(offsets=[place], asynchronous=False)
    Tool(broker.address).text("config", "set", "--topic", "__consumer_offsets", "segment.bytes=20000")
    (used,) = [
        folder.name
        for folder in (broker.folder / "data").glob("__consumer_offsets-*")
        if folder_bytes(broker, folder.name) > 0
    ]
    for offset in range(2, 2000):
        place.offset = offset
        consumer.commit(offsets=[place], asynchronous=False)
    wait_until_smaller(broker, used, 45_000)
    broker.kill()
    broker.start()
    (committed,) = consumer.committed([ck.TopicPartition(topic, 0)], timeout=DEADLINE_SECONDS)
    assert committed.offset == 1999
    consumer.close()
    writer.close()


def tombstones(client, topic: str) -> list[Record]:
    return [one for one in client.read(topic, 0) if one.value is None]


@pytest.mark.slow
def test_a_consumer_that_began_before_a_tombstone_sees_it(broker, topic):
    """As long as delete.retention.ms says: it has read a value that is gone by now, and must not keep it."""
    writer = Confluent(broker.address)
    kept = COMPACTED | {"delete.retention.ms": str(TOMBSTONE_SECONDS * 1000)}
    writer.create_topic(topic, 1, kept)
    writer.produce(topic, [Record(b"key-%d" % at, bytes(1000), partition=0) for at in range(KEYS)])
    reader = ck.Consumer({"bootstrap.servers": broker.address, "group.id": topic})
    reader.assign([ck.TopicPartition(topic, 0, 0)])
    read = reader.consume(KEYS, DEADLINE_SECONDS)
    state = {one.key(): one.value() for one in read}
    assert len(state) == KEYS
    reader.pause([ck.TopicPartition(topic, 0)])
    sent_at = time.monotonic()
    writer.produce(topic, [Record(b"key-0", None, partition=0)])
    for _ in range(3):
        writer.produce(topic, [Record(b"filler", bytes(15_000), partition=0)])
    deadline = time.monotonic() + TOMBSTONE_SECONDS / 2
    while any(one.key == b"key-0" and one.value is not None for one in writer.read(topic, 0)):
        assert time.monotonic() < deadline, "the value is still there"
    reader.seek(ck.TopicPartition(topic, 0, KEYS))  # what was fetched ahead is forgotten
    reader.resume([ck.TopicPartition(topic, 0)])
    while b"filler" not in state:
        message = reader.poll(DEADLINE_SECONDS)
        assert message is not None and message.error() is None
        state[message.key()] = message.value()
    assert state[b"key-0"] is None
    reader.close()
    deadline = time.monotonic() + TOMBSTONE_SECONDS + DEADLINE_SECONDS
    while tombstones(writer, topic):
        assert time.monotonic() < deadline, "the tombstone stays"
    assert time.monotonic() - sent_at >= TOMBSTONE_SECONDS
    writer.close()
