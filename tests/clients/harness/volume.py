"""A partition with much in it, by raw requests: as large as a test likes in little time."""

import os

from harness.batches import last_offset
from harness.confluent import Confluent
from harness.records import Record
from harness.wire import RawConnection


def fill(address: str, topic: str, size: int, value_bytes: int) -> tuple[int, int]:
    """Makes the topic, of one partition, with batches of one record whose value says nothing to a codec.
    Answers how many there are, and the bytes of all."""
    client = Confluent(address)
    client.create_topic(topic, 1)
    client.produce(topic, [Record(b"key", os.urandom(value_bytes))])
    with RawConnection(address) as connection:
        batch = connection.fetch_batches(topic, 0)
        count = size // len(batch)
        for _ in range(count - 1):
            assert connection.produce(topic, 0, batch, 3) == 0
    return count, count * len(batch)


def read_all(address: str, topic: str, count: int) -> int:
    """Bytes of its first `count` records."""
    read = offset = 0
    with RawConnection(address) as connection:
        while offset < count:
            records = connection.fetch_batches(topic, 0, offset)
            read += len(records)
            offset = last_offset(records) + 1
    return read
