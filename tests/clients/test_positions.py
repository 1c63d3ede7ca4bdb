"""Finding a place in a partition: by offset, by time, at both ends, and where there is nothing."""

import time

import pytest

from harness.client import UNKNOWN_TOPIC_OR_PARTITION, ClientError
from harness.records import Record, numbered_records

COUNT = 2000
STEP_MS = 1000


@pytest.fixture(scope="module")
def dated(clients):
    """A topic of one partition: record n has the number n, offset n, and a time of STEP_MS after
    the one before."""
    topic = "dated"
    first = int(time.time() * 1000) - COUNT * STEP_MS
    writer = clients["confluent"]
    writer.create_topic(topic, 1)
    records = [
        Record(record.key, record.value, record.headers, timestamp=first + n * STEP_MS)
        for n, record in enumerate(numbered_records(COUNT))
    ]
    # Several batches, each of many records: the answer lies inside a batch, not at its start.
    for at in range(0, COUNT, 250):
        writer.produce(topic, records[at : at + 250], codec="gzip" if at % 500 else "none")
    return topic, records


def test_seeking_by_offset_finds_that_record(client, dated):
    topic, records = dated
    offsets = [1999, 0, 1000, 999, 1, 1234, 250, 249]
    found = client.seek(topic, 0, offsets)
    assert found == client.seen([records[offset] for offset in offsets])
    assert [record.offset for record in found] == offsets


def test_reading_from_an_offset_gives_all_that_follows(client, dated):
    topic, records = dated
    assert client.read(topic, 0, 1777) == client.seen(records[1777:])
    assert client.read(topic, 0, COUNT) == []


@pytest.mark.needs("timestamps")
def test_times_come_back_as_sent(client, dated):
    topic, records = dated
    assert [record.timestamp for record in client.read(topic, 0)] == [
        record.timestamp for record in records
    ]


@pytest.mark.needs("by-time")
def test_seeking_by_time_finds_the_first_record_not_older(client, dated):
    topic, records = dated
    first = records[0].timestamp
    for n in (0, 1, 249, 250, 251, 777, 1999):
        assert client.offset_at_time(topic, 0, first + n * STEP_MS) == n
        assert client.offset_at_time(topic, 0, first + n * STEP_MS - 1) == n
    assert client.offset_at_time(topic, 0, 0) == 0
    assert client.offset_at_time(topic, 0, records[-1].timestamp + 1) is None


def test_bounds_are_the_first_offset_and_the_next(client, dated):
    assert client.bounds(dated[0], 0) == (0, COUNT)


def test_kcat_reads_the_last_few_and_a_span_of_time(clients, dated):
    topic, records = dated
    assert clients["kcat"].read_last(topic, 0, 10) == records[-10:]
    start, end = records[300].timestamp, records[350].timestamp
    assert clients["kcat"].read_from_time(topic, 0, start, end) == records[300:350]


def test_an_empty_topic_ends_at_once(client, topic):
    client.create_topic(topic, 3)
    for partition in range(3):
        assert client.bounds(topic, partition) == (0, 0)
        assert client.read(topic, partition) == []
        if "by-time" in client.abilities:
            assert client.offset_at_time(topic, partition, 0) is None


@pytest.mark.needs("quiet-metadata")
def test_an_unknown_topic_is_refused_and_not_created(client, topic):
    for _ in range(2):  # the first question must not have created it
        with pytest.raises(ClientError) as refused:
            client.partition_count(topic)
        assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION
