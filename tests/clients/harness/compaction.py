"""Compaction that is soon, or slow, and a writer who knows what must be there after it."""

import random
import time
from pathlib import Path

from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.records import Record

SOON = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.segment.delete.delay.ms": 0,
    "log.retention.check.interval.ms": 100,
}
SLOWLY = {"log.cleaner.io.max.bytes.per.second": 300_000}
"""So that a kill finds a pass at work."""
SEND_AGAIN_SECONDS = 2
"""A pass may have come and gone."""
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "20000", "delete.retention.ms": "0"}
FILLER = b"filler"


class Writer:
    """Knows the newest of each key. What it sends is acknowledged when `send` returns."""

    def __init__(self, address: str, topic: str, seed: int, keys: int = 30):
        self.client = Confluent(address)
        self.topic = topic
        self.chance = random.Random(seed)
        self.keys = keys
        self.newest: dict[bytes, bytes] = {}
        self.offsets: dict[bytes, int] = {}  # of the newest
        self.sent = 0

    def send(self, records: int, at_once: int = 100) -> None:
        """In batches smaller than a segment."""
        for first in range(0, records, at_once):
            batch = []
            for _ in range(min(at_once, records - first)):
                self.sent += 1
                key = b"key-%d" % self.chance.randrange(self.keys)
                value = b"%d-%s" % (self.sent, bytes(self.chance.randrange(200)))
                batch.append(Record(key, value, partition=0))
                self.offsets[key] = self.sent - 1
            self.client.produce(self.topic, batch, linger_ms=1)
            self.newest.update({record.key: record.value for record in batch})

    def send_what_stays_dirty(self) -> None:
        """The active segment is not compacted: what is asked for is before it."""
        for _ in range(3):
            self.client.produce(self.topic, [Record(FILLER, bytes(15_000), partition=0)])

    def assert_newest_are_there(self) -> None:
        """In the order of their offsets, each the last of its key."""
        read = self.client.read(self.topic, 0)
        offsets = [record.offset for record in read]
        assert offsets == sorted(set(offsets))
        found = {record.key: record.value for record in read if record.key != FILLER}
        assert found == self.newest

    def wait_until_compacted(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            read = [one for one in self.client.read(self.topic, 0) if one.key != FILLER]
            if len(read) <= self.keys:
                return
            assert time.monotonic() < deadline, f"{len(read)} records of {self.keys} keys"


def half_done(partition: Path) -> list[str]:
    return [one.name for one in partition.iterdir() if one.suffix in (".cleaned", ".swap")]


def wait_for_a_pass(partition: Path, writer: Writer) -> None:
    """With little to do for it: one that is to be SLOW reads all that is new before it shows."""
    give_up_at = time.monotonic() + 2 * DEADLINE_SECONDS
    send_at = 0.0
    while not half_done(partition):
        now = time.monotonic()
        assert now < give_up_at, "no pass begins"
        if now >= send_at:
            writer.send(200)
            send_at = time.monotonic() + SEND_AGAIN_SECONDS
        writer.client.bounds(writer.topic, 0)


def compact_at_full_speed(broker, writer: Writer) -> None:
    """A broker that was set up to do it SLOWLY is killed, and comes to the end of it."""
    broker.kill()
    broker.defaults = {name: value for name, value in broker.defaults.items() if name not in SLOWLY}
    broker.start()
    writer.send_what_stays_dirty()
    writer.wait_until_compacted()
    writer.assert_newest_are_there()
