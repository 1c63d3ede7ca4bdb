"""Topics that are made, grown and removed, and that come, or do not come, by themselves."""

import time

import pytest

from conftest import PARTITIONS
from harness.client import (
    DEADLINE_SECONDS,
    INVALID_PARTITIONS,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
    ClientError,
)
from harness.confluent import Confluent
from harness.kcat import Kcat
from harness.records import Record


def test_nothing_is_created_when_automatic_creation_is_off(broker_kind, tmp_path, topic):
    own = broker_kind(tmp_path, {"auto.create.topics.enable": False})
    try:
        kcat = Kcat(own.start().address)
        for _ in range(2):
            assert "Unknown topic" in kcat.listed(topic)["error"]
        Confluent(own.address).create_topic(topic, PARTITIONS)
        assert len(kcat.listed(topic)["partitions"]) == PARTITIONS
    finally:
        own.close()


@pytest.mark.needs("topics")
def test_a_topic_is_listed_until_it_is_deleted(client, topic):
    assert topic not in client.list_topics()
    client.create_topic(topic, 2)
    assert topic in client.list_topics()
    client.delete_topic(topic)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while topic in client.list_topics():
        assert time.monotonic() < deadline
    with pytest.raises(ClientError) as refused:
        client.delete_topic(topic)
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.needs("topics")
def test_a_topic_is_not_created_twice(client, topic):
    client.create_topic(topic, 2)
    with pytest.raises(ClientError) as refused:
        client.create_topic(topic, 2)
    assert refused.value.code == TOPIC_ALREADY_EXISTS


@pytest.mark.needs("topics")
def test_a_topic_made_again_is_empty(client, topic):
    for _ in range(3):
        client.create_topic(topic, 1)
        assert client.bounds(topic, 0) == (0, 0)
        client.produce(topic, [Record(b"key", b"value", partition=0)])
        client.delete_topic(topic)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while topic in client.list_topics():
            assert time.monotonic() < deadline


@pytest.mark.needs("grow")
def test_a_topic_gets_more_partitions_and_keeps_its_records(client, topic):
    client.create_topic(topic, 2)
    client.produce(topic, [Record(b"old", b"0", partition=1)])
    client.grow(topic, 4)
    client.wait_until_ready(topic, 4)
    assert client.partition_count(topic) == 4
    client.produce(topic, [Record(b"new", b"1", partition=3)])
    values = [[record.value for record in client.read(topic, n)] for n in range(4)]
    assert values == [[], [b"0"], [], [b"1"]]


@pytest.mark.needs("grow")
@pytest.mark.parametrize("count", [1, 2])
def test_partitions_are_not_taken_away(client, topic, count):
    client.create_topic(topic, 2)
    with pytest.raises(ClientError) as refused:
        client.grow(topic, count)
    assert refused.value.code == INVALID_PARTITIONS
