"""What one client writes, all clients read back: byte-equal, and in order in each partition."""

import time
from dataclasses import replace

import pytest

from conftest import PARTITIONS
from harness.client import DEADLINE_SECONDS
from harness.records import CODECS, Record, assert_same_and_in_order, numbered_records
from harness.wire import RawConnection, codecs_of_batches

MANY, FEW = 10_000, 300


def test_a_new_topic_has_its_partitions(client, topic):
    client.create_topic(topic, PARTITIONS)
    assert client.partition_count(topic) == PARTITIONS


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_come_back_as_sent(client, clients, broker, codec, topic):
    client.create_topic(topic, PARTITIONS)
    sent = numbered_records(MANY, headers=client.fixed_headers)
    client.produce(topic, sent, codec=codec)
    for reader in {client, clients["confluent"]}:
        partitions = reader.read_all(topic, PARTITIONS)
        assert all(partitions.values()), f"{reader.name}: a partition is empty"
        assert_same_and_in_order(reader.seen(sent), partitions)
    # P17: a client that thinks the broker too old for its codec, as librdkafka does when Produce v0
    # is not offered, sends plain batches and says nothing.
    with RawConnection(broker.address) as connection:
        codecs = codecs_of_batches(connection.fetch_batches(topic, 0))
    # A batch that compression makes larger goes plain: one of a few records, on a busy machine.
    assert CODECS.index(codec) in codecs
    assert set(codecs) <= {CODECS.index(codec), CODECS.index("none")}
    assert codecs.count(CODECS.index(codec)) >= len(codecs) / 2


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_any_wrote(client, clients, codec, topic):
    client.create_topic(topic, PARTITIONS)
    sent = numbered_records(FEW, headers=client.fixed_headers)
    client.produce(topic, sent, codec=codec)
    for reader in clients.readers(codec):
        assert_same_and_in_order(reader.seen(sent), reader.read_all(topic, PARTITIONS))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_stores_the_records(client, topic, acks):
    client.create_topic(topic, PARTITIONS)
    sent = numbered_records(300, headers=client.fixed_headers)
    # The first are acknowledged, so that the partitions are ready when those come that may be lost.
    client.produce(topic, sent[:100])
    client.produce(topic, sent[100:], acks=acks)
    if acks == "0":
        wait_for_records(client, topic, len(sent))
    assert_same_and_in_order(client.seen(sent), client.read_all(topic, PARTITIONS))


def wait_for_records(client, topic: str, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while sum(client.bounds(topic, partition)[1] for partition in range(PARTITIONS)) < count:
        assert time.monotonic() < deadline, f"fewer than {count} records arrived"


@pytest.mark.needs("headers")
def test_odd_headers_and_keys_come_back_as_sent(client, clients, topic):
    sent = [
        Record(None, b"no key", ()),
        Record(b"", b"empty key", ()),
        Record(bytes(range(256)), b"every byte in the key", ()),
        Record(b"k", b"empty header", (("empty", b""),)),
        Record(b"k", b"one name twice", (("n", b"1"), ("n", b"2"))),
        Record(b"k", b"bytes in a header", (("bytes", bytes(range(256))),)),
        Record(b"k", b"names are text", (("größe-尺寸", b"x"),)),
        Record(b"k", b"many", tuple((f"header-{n:03}", b"v" * n) for n in range(200))),
    ]
    client.create_topic(topic, 1, {})
    client.produce(topic, [replace(record, partition=0) for record in sent])
    for reader in clients.readers("none", "headers"):
        assert reader.read(topic, 0) == reader.seen(sent), reader.name


def test_what_only_some_clients_can_put_in_a_header(clients, topic):
    sent = [
        Record(b"k", b"null beside empty", (("null", None), ("empty", b""))),
        Record(b"k", b"twice, another between", (("n", b"1"), ("other", b"x"), ("n", b"2"))),
        Record(b"k", b"no name", (("", b"no name"),)),
    ]
    clients["confluent"].create_topic(topic, 1)
    for name in ("confluent", "java"):
        clients[name].produce(topic, sent)
        assert clients["confluent"].read(topic, 0)[-3:] == sent
        assert clients["java"].read(topic, 0)[-3:] == sent
