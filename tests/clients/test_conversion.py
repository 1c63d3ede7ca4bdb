"""What conversion and compression by the broker cost, and whom: old formats for old clients, and
topics that have a codec of their own."""

import gzip
import os
import struct
import threading
from pathlib import Path

import pytest

from harness.batches import GZIP, batch_around, record, record_batch
from harness.confluent import Confluent
from harness.memory import peak_bytes
from harness.records import CODECS, Record
from harness.wire import API_FETCH, RawConnection, codecs_of_batches

pytestmark = pytest.mark.millrace

MIB = 1 << 20
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def fetch_v2(wire: RawConnection, topic: str, offset: int, bytes_max: int = 4 * MIB) -> bytes:
    """The messages of one partition, in format V1."""
    name = topic.encode()
    asked = struct.pack(">iiii", -1, 1000, 1, 1)
    asked += struct.pack(f">h{len(name)}siiqi", len(name), name, 1, 0, offset, bytes_max)
    answer = wire.ask(API_FETCH, 2, asked)
    at = 4 + 4 + 2 + len(name) + 4
    partition, error, _high, size = struct.unpack_from(">ihqi", answer, at)
    assert (partition, error) == (0, 0)
    return answer[at + 18 : at + 18 + size]


def next_offset(messages: bytes) -> int:
    """Behind the last message; of a wrapper that is the last one inside."""
    at = offset = 0
    while at < len(messages):
        offset, size = struct.unpack_from(">qi", messages, at)
        at += 12 + size
    return offset + 1


class Threads:
    """CPU seconds of a broker's threads since this was made, by what they are."""

    def __init__(self, broker):
        self.folder = Path(f"/proc/{broker.process.pid}/task")
        self.before = self._now()

    def _now(self) -> dict[str, float]:
        used = {"shard": 0.0, "worker": 0.0}
        for task in self.folder.iterdir():
            kind = (task / "comm").read_text().strip().removeprefix("mr-").split("-")[0]
            user, system = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
            if kind in used:
                used[kind] += (int(user) + int(system)) / TICKS_PER_SECOND
        return used

    def used(self) -> tuple[float, float]:
        """Of the threads that serve connections, of workers."""
        now = self._now()
        return now["shard"] - self.before["shard"], now["worker"] - self.before["worker"]


def text(kib: int) -> bytes:
    """What compresses, but not by itself."""
    return os.urandom(kib * 512).hex().encode()


def test_conversion_is_no_work_of_the_threads_that_serve_connections(own_broker, topic):
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    client.produce(topic, [Record(None, text(100)) for _ in range(40)], codec="gzip")
    threads = Threads(own_broker)
    with RawConnection(own_broker.address) as wire:
        for _ in range(3):
            offset = 0
            while offset < 40:
                offset = next_offset(fetch_v2(wire, topic, offset))
    shards, workers = threads.used()
    assert workers > 0.2, "nothing was to be done"
    assert shards < workers / 4


def test_compressing_anew_is_no_work_of_the_threads_that_serve_connections(own_broker, topic):
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1, {"compression.type": "gzip"})
    batch = record_batch([text(100) for _ in range(5)])
    threads = Threads(own_broker)
    with RawConnection(own_broker.address) as wire:
        for _ in range(40):
            assert wire.produce(topic, 0, batch, 3) == 0
    shards, workers = threads.used()
    assert workers > 0.2, "nothing was to be done"
    assert shards < workers / 4


@pytest.mark.parametrize(
    ("codec", "lower", "higher"), [("gzip", "1", "9"), ("lz4", "9", "12"), ("zstd", "-50", "15")]
)
def test_a_topics_level_counts(own_broker, topic, codec, lower, higher):
    """KIP-390. Level 9 of lz4 is its fast one, as in Kafka."""
    client = Confluent(own_broker.address)
    words = b"".join(b"%d is followed by %d;" % (n * 7919 % 10_007, n % 97) for n in range(20_000))
    stored = {}
    for level in (lower, higher):
        name = f"{topic}.{level.removeprefix('-')}"
        kept = {"compression.type": codec, f"compression.{codec}.level": level}
        client.create_topic(name, 1, kept)
        with RawConnection(own_broker.address) as wire:
            assert wire.produce(name, 0, record_batch([words]), 3) == 0
        (log,) = (own_broker.folder / "data" / f"{name}-0").glob("*.log")
        batches = log.read_bytes()
        assert codecs_of_batches(batches) == [CODECS.index(codec)]
        stored[level] = len(batches)
        assert client.read(name, 0)[0].value == words
    assert stored[higher] < stored[lower] * 0.97, stored


def test_a_batch_that_opens_to_100_mib_costs_an_old_reader_little_more(own_broker, topic):
    """It is told in parts: opened whole, but never made whole in another format beside that."""
    count, value = 100, bytes(MIB)
    body = gzip.compress(b"".join(record(at, value) for at in range(count)), 1)
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    with RawConnection(own_broker.address) as wire:
        assert wire.produce(topic, 0, batch_around(body, count, GZIP), 3) == 0
        offsets = [0]

        def read_all() -> None:
            while offsets[-1] < count:
                offsets.append(next_offset(fetch_v2(wire, topic, offsets[-1])))

        peak = peak_bytes(own_broker, read_all)
    assert len(offsets) > 3 and offsets == sorted(set(offsets)) and offsets[-1] == count
    assert peak < 190 * MIB, f"{peak / MIB:.0f} MiB"


@pytest.mark.slow
def test_many_old_readers_of_large_batches_cost_little_more_than_one(own_broker, topic):
    """What opens to much is opened for one of them after the other."""
    count, readers = 100, 6
    body = gzip.compress(b"".join(record(at, bytes(MIB)) for at in range(count)), 1)
    Confluent(own_broker.address).create_topic(topic, readers)
    with RawConnection(own_broker.address) as wire:
        for partition in range(readers):
            assert wire.produce(topic, partition, batch_around(body, count, GZIP), 3) == 0
    name, answered = topic.encode(), []
    all_at_once = threading.Barrier(readers)

    def read(partition: int) -> None:
        asked = struct.pack(">iiii", -1, 1000, 1, 1)
        asked += struct.pack(f">h{len(name)}siiqi", len(name), name, 1, partition, 0, 4 * MIB)
        with RawConnection(own_broker.address) as wire:
            all_at_once.wait()
            answered.append(len(wire.ask(API_FETCH, 2, asked)))

    def read_all() -> None:
        threads = [threading.Thread(target=read, args=(at,)) for at in range(readers)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    peak = peak_bytes(own_broker, read_all)
    assert len(answered) == readers and min(answered) > 1000, answered  # 100 MiB of zeros, compressed again
    print(f"{peak / MIB:.0f} MiB")
    assert peak < (190 + readers * 8) * MIB, f"{peak / MIB:.0f} MiB"


def test_many_partitions_share_what_one_request_may_take(own_broker, topic):
    """Each gets something: old clients may name them in the same order for ever."""
    partitions, batches = 64, 4
    Confluent(own_broker.address).create_topic(topic, partitions)
    batch = record_batch([os.urandom(200_000)])
    name = topic.encode()
    asked = struct.pack(">iiii", -1, 1000, 1, 1)
    asked += struct.pack(f">h{len(name)}si", len(name), name, partitions)
    with RawConnection(own_broker.address) as wire:
        for partition in range(partitions):
            for _ in range(batches):
                assert wire.produce(topic, partition, batch, 3) == 0
            asked += struct.pack(">iqi", partition, 0, 4 * MIB)
        answer = wire.ask(API_FETCH, 2, asked)
    assert len(answer) < partitions * batches * len(batch) * 0.6
    at = 4 + 4 + 2 + len(name) + 4
    for _ in range(partitions):
        partition, error, _high, size = struct.unpack_from(">ihqi", answer, at)
        assert error == 0 and size >= len(batch) - 100, (partition, error, size)
        at += 18 + size
