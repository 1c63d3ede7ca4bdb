"""Batches that are written piece by piece while others go on: whatever comes in between, what was acknowledged is there,
and nothing twice."""

import contextlib
import itertools
import random
import struct
import threading

import pytest

from harness.batches import record_batch
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.tool import Tool, run
from harness.wire import RawConnection

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

MIB = 1 << 20
PRODUCE_VERSION = 7
KILLS = 4
LARGE = {"max.message.bytes": str(64 * MIB)}


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker", {})
    try:
        broker.start()
        yield broker
        broker.end()
    finally:
        broker.close()


class Sender(threading.Thread):
    """One batch after the other, each of a number of its own, until the broker is gone."""

    def __init__(self, address: str, topic: str, numbers: itertools.count, value_bytes: int):
        super().__init__()
        self.address = address
        self.topic = topic
        self.numbers = numbers
        self.rest = bytes(value_bytes)
        self.acknowledged: list[int] = []
        self.enough = threading.Semaphore(0)

    def run(self) -> None:
        with contextlib.suppress(OSError, EOFError, AssertionError), RawConnection(self.address) as wire:
            while True:
                number = next(self.numbers)
                batch = record_batch([struct.pack(">q", number) + self.rest])
                if wire.produce(self.topic, 0, batch, PRODUCE_VERSION) != 0:
                    return
                self.acknowledged.append(number)
                self.enough.release()


def numbers_read(address: str, topic: str) -> list[int]:
    client = Confluent(address)
    read = [struct.unpack_from(">q", record.value)[0] for record in client.read(topic, 0)]
    client.close()
    return read


def test_kills_while_large_batches_are_written(broker):
    client = Confluent(broker.address)
    client.create_topic("large", 1, LARGE)
    client.close()
    numbers, chance, acknowledged = itertools.count(), random.Random(5), []
    for _ in range(KILLS):
        senders = [Sender(broker.address, "large", numbers, size) for size in (6 * MIB, 3 * MIB, 100)]
        for sender in senders:
            sender.start()
        for sender in senders:
            for _ in range(chance.randint(1, 3)):
                assert sender.enough.acquire(timeout=60)
        broker.kill()
        for sender in senders:
            sender.join()
            acknowledged += sender.acknowledged
        broker.start()
        read = numbers_read(broker.address, "large")
        assert len(read) == len(set(read)), "a batch is there twice"
        assert set(acknowledged) <= set(read)
    assert broker.stop()[0] == 0
    verified = run("log", "verify", broker.folder / "data")
    assert verified.code == 0, verified.errors + verified.output
    broker.start()


def test_a_topic_can_be_deleted_while_a_large_batch_is_written(broker):
    tool = Tool(broker.address)
    batch = record_batch([bytes(MIB)] * 48)
    for at in range(8):
        topic = f"large-{at}"
        tool.text("topic", "create", topic, "--partitions", 1, "--config", f"max.message.bytes={64 * MIB}")
        with RawConnection(broker.address) as wire:
            wire.send_produce(topic, 0, batch, PRODUCE_VERSION)
            assert tool.text("topic", "delete", topic) == f"deleted topic {topic}\n"
            wire.receive_frame()  # taken or refused
    assert "could not be erased" not in broker.log_text()
