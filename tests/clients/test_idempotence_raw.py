"""Sequences of idempotent producers, by batches built by hand: what no client library would send."""

import struct

import pytest

from harness.batches import record_batch
from harness.wire import RawConnection

PRODUCE, INIT_PRODUCER_ID = 0, 22
OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE, INVALID_PRODUCER_EPOCH = 45, 46, 47
SEQUENCES = 1 << 31


class Producer:
    """An idempotent producer of one partition, with an id of its own."""

    def __init__(self, connection: RawConnection, topic: str):
        self.connection, self.topic = connection, topic
        answer = connection.ask(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
        _throttle, error, self.id, self.epoch = struct.unpack(">ihqh", answer)
        assert error == 0, error

    def send(self, sequence: int, records: int = 1, epoch: int | None = None) -> tuple[int, int]:
        """(error, base offset) of a batch that begins with `sequence`."""
        values = [f"{sequence}+{at}".encode() for at in range(records)]
        epoch = self.epoch if epoch is None else epoch
        batch = record_batch(values, self.id, epoch, sequence)
        return self.connection.produce_at(self.topic, 0, batch, version=3)


@pytest.fixture
def producer(clients, broker, topic):
    clients["confluent"].create_topic(topic, 1)
    with RawConnection(broker.address) as connection:
        yield Producer(connection, topic)


def stored(clients, topic: str) -> int:
    return clients["confluent"].bounds(topic, 0)[1]


def test_i01_sequences_wrap_to_zero(producer, clients, topic):
    first = SEQUENCES - 3
    for at in range(6):
        assert producer.send((first + at) % SEQUENCES) == (0, at)
    assert stored(clients, topic) == 6


def test_i01_a_batch_may_straddle_the_wrap(producer, clients, topic):
    assert producer.send(SEQUENCES - 2, records=5) == (0, 0)
    assert producer.send(3, records=2) == (0, 5)
    assert producer.send(SEQUENCES - 2, records=5) == (0, 0), "sent again"
    assert stored(clients, topic) == 7


def test_i03_the_last_five_batches_are_known_again(producer, clients, topic):
    answers = [producer.send(at) for at in range(6)]
    assert answers == [(0, at) for at in range(6)]
    assert [producer.send(at) for at in range(1, 6)] == answers[1:]
    assert producer.send(1) == (0, 1), "the oldest of the five alone"
    error, _offset = producer.send(0)
    assert error in (OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE)
    assert stored(clients, topic) == 6


def test_i03_batches_in_flight_are_answered_in_order(producer, clients, topic):
    """Five requests are written before the first answer is read, and all of them again."""
    connection = producer.connection
    for _round in range(2):
        for sequence in range(5):
            batch = record_batch([b"value"], producer.id, producer.epoch, sequence)
            connection.send_produce(topic, 0, batch, version=3)
        for sequence in range(5):
            assert connection.receive_produced(topic, 0) == (0, sequence)
    assert stored(clients, topic) == 5


def test_i05_a_new_epoch_fences_the_old_one(producer, clients, topic):
    assert producer.send(0) == (0, 0)
    assert producer.send(1) == (0, 1)
    assert producer.send(2, epoch=1)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, epoch=1) == (0, 2)
    assert producer.send(2, epoch=0)[0] == INVALID_PRODUCER_EPOCH
    assert producer.send(1, epoch=1) == (0, 3)
    assert stored(clients, topic) == 4
