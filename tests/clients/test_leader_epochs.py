"""OffsetForLeaderEpoch (KIP-320) as librdkafka uses it: whoever begins at an offset of a known leader
epoch asks where that epoch ends, and learns that the log has lost what it had read."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from harness.confluent import Confluent
from harness.http import Http
from harness.records import Record

RECORDS = 20
SECONDS_MAX = 60


def written(address: str, topic: str) -> Confluent:
    client = Confluent(address)
    client.create_topic(topic, 1)
    client.produce(topic, [Record(None, b"%d" % n, partition=0) for n in range(RECORDS)])
    return client


class Reader:
    """One consumer of partition 0 that begins at a position."""

    def __init__(self, address: str, position: TopicPartition, reset: str):
        self.consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": reset,
            }
        )
        self.consumer.assign([position])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.consumer.close()

    def next(self):
        """The next message, or error."""
        message = self.consumer.poll(SECONDS_MAX)
        assert message is not None, f"nothing in {SECONDS_MAX} s"
        return message


def epoch_of(address: str, topic: str) -> int:
    with Reader(address, TopicPartition(topic, 0, OFFSET_BEGINNING), "error") as reader:
        message = reader.next()
        assert message.error() is None, message.error()
        return message.leader_epoch()


def test_a_reader_of_a_known_epoch_goes_on_where_it_was(broker, topic):
    written(broker.address, topic)
    epoch = epoch_of(broker.address, topic)
    assert epoch >= 0
    position = TopicPartition(topic, 0, 7, leader_epoch=epoch)
    with Reader(broker.address, position, "error") as reader:
        messages = [reader.next() for _ in range(RECORDS - 7)]
        assert [message.error() for message in messages] == [None] * (RECORDS - 7)
        assert [message.offset() for message in messages] == list(range(7, RECORDS))


@pytest.mark.millrace
def test_the_epoch_is_asked_for(broker, topic):
    def asked() -> float:
        metrics = Http(broker.http_address()).metrics()
        return metrics.value("millrace_kafka_requests_total", api="OffsetForLeaderEpoch")

    written(broker.address, topic)
    epoch = epoch_of(broker.address, topic)
    before = asked()
    position = TopicPartition(topic, 0, 7, leader_epoch=epoch)
    with Reader(broker.address, position, "error") as reader:
        assert reader.next().offset() == 7
        assert asked() > before


def test_a_reader_beyond_the_end_of_its_epoch_learns_that_records_were_lost(broker, topic):
    written(broker.address, topic)
    position = TopicPartition(topic, 0, RECORDS + 5, leader_epoch=epoch_of(broker.address, topic))
    with Reader(broker.address, position, "error") as reader:
        error = reader.next().error()
        assert error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET
        assert "truncation detected" in error.str() and f"end offset is {RECORDS}" in error.str()


def test_a_reader_beyond_the_end_of_its_epoch_goes_on_at_that_end(broker, topic):
    client = written(broker.address, topic)
    position = TopicPartition(topic, 0, RECORDS + 5, leader_epoch=epoch_of(broker.address, topic))
    with Reader(broker.address, position, "latest") as reader:
        assert reader.consumer.poll(1) is None, "there is nothing yet"
        client.produce(topic, [Record(None, b"next", partition=0)])
        message = reader.next()
        assert (message.error(), message.offset()) == (None, RECORDS)
