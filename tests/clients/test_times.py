"""The times of records: the sender's, the broker's, none; and records found by them."""

import time

import pytest

from harness.client import DEADLINE_SECONDS
from harness.fleet import Fleet
from harness.records import Record

FOREVER = {"retention.ms": "-1"}
NO_TIME = -1


def now() -> int:
    return int(time.time() * 1000)


def timed(times) -> list[Record]:
    return [Record(b"key", b"at %d" % one, timestamp=one) for one in times]


@pytest.mark.needs("timestamps")
def test_the_time_given_is_the_time_stored(client, clients, topic):
    client.create_topic(topic, 1, FOREVER)
    sent = timed([1, 1_000_000, 999_999, now(), 5, now() + 60_000])
    client.produce(topic, sent)
    for reader in clients.readers("none", "timestamps"):
        found = [record.timestamp for record in reader.read(topic, 0)]
        assert found == [record.timestamp for record in sent], reader.name


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_broker_gives_the_time_where_the_topic_says_so(client, clients, topic, codec):
    client.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    given = 1_000_000 if "timestamps" in client.abilities else None
    fixed = client.fixed_headers or ()
    sent = [Record(b"key", b"%d" % n, fixed, timestamp=given) for n in range(10)]
    before = now()
    client.produce(topic, sent, codec=codec)
    after = now()
    for reader in clients.readers(codec):
        records = reader.read(topic, 0)
        assert records == reader.seen(sent), reader.name
        if "append-time" in reader.abilities:
            assert all(before <= record.timestamp <= after for record in records), reader.name
        if "by-time" in reader.abilities:
            assert reader.offset_at_time(topic, 0, before) == 0
            assert reader.offset_at_time(topic, 0, after + 1) is None


@pytest.mark.needs("timeless")
@pytest.mark.old_formats
def test_a_record_sent_without_a_time_has_none(client, clients, topic):
    client.create_topic(topic, 1, {})
    client.produce(topic, [Record(b"key", b"value")])
    for reader in clients.readers("none", "timestamps"):
        assert [record.timestamp for record in reader.read(topic, 0)] == [NO_TIME], reader.name
    for reader in clients.readers("none", "by-time"):
        assert reader.offset_at_time(topic, 0, 0) is None, reader.name


@pytest.mark.needs("timestamps", "by-time")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_time_is_found_inside_a_batch(client, clients, topic, codec):
    """T01: neither skipped nor answered with the start of its batch."""
    client.create_topic(topic, 1, FOREVER)
    client.produce(topic, timed([10, 20, 30]), codec=codec, linger_ms=100)
    for reader in clients.readers("none", "by-time"):
        answers = [reader.offset_at_time(topic, 0, asked) for asked in (5, 10, 15, 20, 25, 30, 31)]
        assert answers == [0, 0, 1, 1, 2, 2, None], reader.name


@pytest.mark.needs("timestamps", "by-time")
@pytest.mark.parametrize("linger_ms", [0, 5, 100])
def test_every_time_is_found_however_the_client_batches(client, topic, linger_ms):
    """T03."""
    client.create_topic(topic, 1, FOREVER)
    sent = timed(range(1, 101))
    for at in range(0, 100, 34):
        client.produce(topic, sent[at : at + 34], linger_ms=linger_ms)
    answers = [client.offset_at_time(topic, 0, asked) for asked in range(1, 101)]
    assert answers == list(range(100))


def test_a_time_that_has_expired_is_not_found(broker_kind, clients, tmp_path, topic):
    """T07: retention leaves an empty partition; its end is no answer, nor is a negative time."""
    own = broker_kind(tmp_path / "broker", {"log.retention.check.interval.ms": 200})
    fleet = Fleet(own.start().address, clients.names)
    try:
        writer = fleet["confluent"]
        config = {"retention.ms": "1000", "segment.ms": "100", "file.delete.delay.ms": "0"}
        writer.create_topic(topic, 1, config)
        writer.produce(topic, timed([1, 2, 3]))
        deadline = time.monotonic() + DEADLINE_SECONDS
        while writer.bounds(topic, 0) != (3, 3):
            assert time.monotonic() < deadline, writer.bounds(topic, 0)
        for reader in fleet.readers("none", "by-time"):
            assert reader.offset_at_time(topic, 0, 2) is None, reader.name
    finally:
        fleet.close()
        own.close()
