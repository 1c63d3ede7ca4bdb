"""Single messages at the edges of what is allowed."""

import pytest

from conftest import PARTITIONS
from harness.client import MESSAGE_TOO_LARGE, ClientError
from harness.confluent import create_topic
from harness.records import Record

MIB = 1 << 20


def one(client, value: bytes | None, key: bytes | None = b"key") -> Record:
    fixed = client.fixed_headers
    return Record(key, value, (("h", b"v"),) if fixed is None else fixed)


def stored_by(reader, topic: str) -> list[Record]:
    return [record for records in reader.read_all(topic, PARTITIONS).values() for record in records]


def test_a_tombstone_has_a_key_and_no_value(client, clients, topic):
    client.create_topic(topic, PARTITIONS)
    client.produce(topic, [one(client, b"lives")])
    client.produce(topic, [one(client, None)])
    for reader in clients.readers():
        expected = reader.seen([one(client, b"lives"), one(client, None)])
        assert stored_by(reader, topic) == expected, reader.name


def test_a_message_of_no_bytes_is_not_a_tombstone(client, clients, topic):
    client.create_topic(topic, PARTITIONS)
    client.produce(topic, [one(client, b"")])
    for reader in clients.readers():
        assert stored_by(reader, topic) == reader.seen([one(client, b"")]), reader.name


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_a_message_of_one_mebibyte(client, clients, broker, topic, codec):
    create_topic(broker.address, topic, 1, {"max.message.bytes": str(2 * MIB)})
    sent = one(client, bytes(n % 251 for n in range(MIB)))
    client.produce(topic, [sent], codec=codec, largest=2 * MIB)
    for reader in clients.readers(codec):
        assert reader.read(topic, 0) == reader.seen([sent]), reader.name


@pytest.mark.needs("error-codes")
def test_the_default_limit_is_a_mebibyte_per_batch(client, topic):
    """max.message.bytes is 1,048,588 by default; a batch of one record is some 100 bytes more than
    its value."""
    client.create_topic(topic, PARTITIONS)
    fits = one(client, bytes(MIB - 500))
    client.produce(topic, [fits], largest=2 * MIB)
    with pytest.raises(ClientError) as refused:
        client.produce(topic, [one(client, bytes(MIB + 500))], largest=2 * MIB)
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert stored_by(client, topic) == client.seen([fits])
