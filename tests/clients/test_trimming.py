"""DeleteRecords: the first records of a partition go, the rest stays where it is."""

import pytest

from harness.client import OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, ClientError
from harness.records import Record

COUNT = 100
STEP_MS = 1000
pytestmark = pytest.mark.needs("trim")


@pytest.fixture
def records(client, clients, topic) -> list[Record]:
    """Stored in ten batches; record n has the offset n and the time (n + 1) * STEP_MS."""
    client.create_topic(topic, 1, {"retention.ms": "-1"})
    sent = [Record(b"key", b"%d" % n, timestamp=(n + 1) * STEP_MS) for n in range(COUNT)]
    for at in range(0, COUNT, 10):
        clients["confluent"].produce(topic, sent[at : at + 10])
    return sent


def test_reading_starts_where_trimming_ended(client, clients, topic, records):
    assert client.trim(topic, 0, 47) == 47
    for reader in clients.readers():
        assert reader.bounds(topic, 0) == (47, COUNT)
        assert reader.read(topic, 0) == reader.seen(records[47:])
    assert client.trim(topic, 0, 30) == 47, "what is gone does not come back"


def test_trimming_all_leaves_the_next_offset(client, topic, records):
    assert client.trim(topic, 0, -1) == COUNT
    assert client.bounds(topic, 0) == (COUNT, COUNT)
    assert client.read(topic, 0) == []
    client.produce(topic, [Record(b"key", b"next")])
    assert [record.offset for record in client.read(topic, 0)] == [COUNT]


def test_trimming_past_the_end_is_refused(client, topic, records):
    with pytest.raises(ClientError) as refused:
        client.trim(topic, 0, COUNT + 1)
    assert refused.value.code == OFFSET_OUT_OF_RANGE
    assert client.bounds(topic, 0) == (0, COUNT)


def test_a_time_before_what_is_left_is_found_at_its_start(client, clients, topic, records):
    """T05: the answer is never below the first offset. T07: and for what is gone altogether there
    is none, which no client takes for a timestamp."""
    client.trim(topic, 0, 50)
    for reader in clients.readers("none", "by-time"):
        assert reader.offset_at_time(topic, 0, records[10].timestamp) == 50
        assert reader.offset_at_time(topic, 0, records[70].timestamp) == 70
    client.trim(topic, 0, -1)
    for reader in clients.readers("none", "by-time"):
        assert reader.offset_at_time(topic, 0, records[10].timestamp) is None
        assert reader.offset_at_time(topic, 0, records[99].timestamp) is None
