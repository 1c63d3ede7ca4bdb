"""Compaction of logs with very many keys takes the memory that its setting names, however many they are."""

import struct
import time

import pytest

from harness.batches import batch_around, varint
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.memory import peak_bytes
from harness.wire import RawConnection

pytestmark = [pytest.mark.millrace, pytest.mark.slow, pytest.mark.alone]

MIB = 1 << 20
MAP_BYTES = 4 * MIB
"""For some 150,000 keys: the fewer take two passes, the more a dozen."""
BESIDE_BYTES_MAX = 32 * MIB
"""What is read and written a step at a time, and indexes."""
GROWN_BYTES_MAX = 16 * MIB
FEW, MANY = 200_000, 2_000_000
AT_ONCE = 10_000
SETTINGS = {
    "log.cleaner.backoff.ms": 10,
    "log.cleaner.dedupe.buffer.size": MAP_BYTES,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.threads": 1,
    "log.segment.delete.delay.ms": 0,
}
LATE = {"cleanup.policy": "compact", "segment.bytes": str(MIB), "min.compaction.lag.ms": "3600000"}
CHECKPOINT = "cleaner-offset-checkpoint"


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker", SETTINGS)
    try:
        broker.start()
        yield broker
        broker.end()
    finally:
        broker.close()


def batch_of_keys(first: int, fronts: list[bytes]) -> bytes:
    """Records of a key of eight bytes each, and a value of none."""
    keys = (struct.pack(">q", first + at) for at in range(len(fronts)))
    records = b"".join(front + key + b"\0\0" for front, key in zip(fronts, keys, strict=True))
    return batch_around(records, len(fronts), time=time.time_ns() // 1_000_000)


def fronts_of_records() -> list[bytes]:
    fronts = []
    for at in range(AT_ONCE):
        front = b"\0\0" + varint(at) + varint(8)
        fronts.append(varint(len(front) + 8 + 2) + front)
    return fronts


def compacted_below(broker, topic: str) -> int:
    path = broker.folder / "data" / CHECKPOINT
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return next((int(row[2]) for row in rows if row[:2] == [topic, "0"] and len(row) == 3), 0)


def peak_of_compaction(broker, keys: int) -> int:
    topic = f"keys-{keys}"
    client = Confluent(broker.address)
    client.create_topic(topic, 1, LATE)
    fronts = fronts_of_records()
    with RawConnection(broker.address) as wire:
        for first in range(0, keys, AT_ONCE):
            assert wire.produce(topic, 0, batch_of_keys(first, fronts), 3) == 0
    logs = (broker.folder / "data" / f"{topic}-0").glob("*.log")
    end = max(int(log.stem) for log in logs)  # the active segment is not compacted
    assert end > keys // 3

    def compact() -> None:
        client.adjust(topic, "set", "min.compaction.lag.ms", "0")
        deadline = time.monotonic() + 4 * DEADLINE_SECONDS
        while (done := compacted_below(broker, topic)) < end:
            assert time.monotonic() < deadline, f"compacted below {done} of {end}"
            client.bounds(topic, 0)

    peak = peak_bytes(broker, compact)
    passes = broker.log_text().count("compacted a log")
    print(f"{keys} keys: {peak / MIB:.1f} MiB, {passes} passes so far")
    return peak


def test_the_memory_of_compaction_does_not_grow_with_the_keys(broker):
    few = peak_of_compaction(broker, FEW)
    many = peak_of_compaction(broker, MANY)
    assert few < MAP_BYTES + BESIDE_BYTES_MAX, f"{few / MIB:.1f} MiB"
    assert many < MAP_BYTES + BESIDE_BYTES_MAX, f"{many / MIB:.1f} MiB"
    assert many < few + GROWN_BYTES_MAX, f"{few / MIB:.1f} MiB, {many / MIB:.1f} MiB"
    assert "cannot be compacted" not in broker.log_text()
