"""The power goes, again and again: the broker is killed, and its disk loses what was not synced."""

import os
import re
import time

import pytest

from conftest import PARTITIONS
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.compaction import COMPACTED, SLOWLY, SOON, Writer, compact_at_full_speed, wait_for_a_pass
from harness.confluent import Confluent
from harness.load import Load
from harness.lossy_disk import LossyDisk
from harness.records import Record
from harness.tool import run

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

CUTS = 4
RECORDS = 300
"""Acknowledged between two cuts."""


@pytest.fixture
def disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    with LossyDisk(tmp_path / "disk") as disk:
        yield disk


def test_what_was_flushed_is_there_after_power_cuts(tmp_path, disk):
    data = disk.folder / "data"
    broker = Millrace(tmp_path / "broker", {"log.segment.bytes": 1 << 20}, {"broker.data": data})
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic("flushed", PARTITIONS, {"flush.messages": "1"})
        client.create_topic("loose", 1)
        cuts = []
        with (
            Load(broker.address, "flushed", PARTITIONS, idempotent=True) as load,
            Load(broker.address, "loose", 1, idempotent=False) as loose,
        ):
            for seed in range(CUTS):
                load.wait_for_acknowledged(RECORDS)
                loose.wait_for_acknowledged(RECORDS)
                broker.kill()
                cuts.append(disk.cut(seed, reorder=seed % 2 == 1))
                broker.start()
            load.wait_for_acknowledged(RECORDS)
            load.finish()
        stored = Confluent(broker.address).read_all("flushed", PARTITIONS)
        load.assert_all_stored(stored, once=True)
        # What was not flushed may be gone, but what is there is whole, and one piece.
        left = Confluent(broker.address).read("loose", 0)
        assert [record.offset for record in left] == list(range(len(left)))
        assert sum(cut.writes_lost for cut in cuts) > 0, "the disk lost nothing"
        assert sum(cut.writes_torn for cut in cuts) > 0, "the disk tore nothing"
        assert sum(cut.writes_reordered for cut in cuts) > 0, "the disk kept the order of all"
        told = re.findall(r"cut a torn tail.* bytes=(\d+)", broker.log_text())
        assert told and all(int(size) > 0 for size in told), broker.log_tail()
        assert broker.stop()[0] == 0
        verified = run("log", "verify", data)
        assert verified.code == 0, verified.errors + verified.output
    finally:
        broker.close()


def wait_until_durable(disk, folder: str) -> None:
    """All that is written there by now."""
    written, durable = disk.logs(folder)
    assert written > 0
    deadline = time.monotonic() + DEADLINE_SECONDS
    while durable < written:
        assert time.monotonic() < deadline, f"{folder}: {durable} of {written} bytes are on the disk"
        _, durable = disk.logs(folder)


def values(numbers: range) -> list[Record]:
    return [Record(None, b"%d" % number, partition=number % PARTITIONS) for number in numbers]


@pytest.mark.slow
def test_what_flush_ms_has_flushed_is_there_after_power_cuts(tmp_path, disk):
    broker = Millrace(
        tmp_path / "broker",
        {"log.segment.bytes": 1 << 14},  # rolls, too
        {"broker.data": disk.folder / "data"},
    )
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic("timed", PARTITIONS, {"flush.ms": "20"})
        client.create_topic("loose", PARTITIONS)
        promised, cuts = [], []
        for seed in range(CUTS):
            first = seed * 2 * RECORDS
            flushed = values(range(first, first + RECORDS))
            client.produce("timed", flushed, linger_ms=1)
            for partition in range(PARTITIONS):
                wait_until_durable(disk, f"data/timed-{partition}")
            promised += flushed
            # Of these some may be there.
            client.produce("timed", values(range(first + RECORDS, first + 2 * RECORDS)), linger_ms=1)
            client.produce("loose", flushed, linger_ms=1)
            broker.kill()
            cuts.append(disk.cut(seed, reorder=seed % 2 == 1))
            broker.start()
            for partition, read in client.read_all("timed", PARTITIONS).items():
                numbers = [int(one.value) for one in read]
                assert numbers == sorted(set(numbers)), "each once, in order"
                wanted = {int(one.value) for one in promised if one.partition == partition}
                assert wanted <= set(numbers), f"{len(wanted - set(numbers))} are lost"
        assert sum(cut.writes_lost for cut in cuts) > 0, "the disk lost nothing"
        assert broker.stop()[0] == 0
    finally:
        broker.close()


@pytest.mark.slow
def test_power_cuts_during_compaction_lose_nothing_of_the_newest(tmp_path, disk):
    """Each finds a pass at work, with checkpoints written all the time; what the disk has of new segments, of their names
    and of the checkpoints is of different moments then."""
    data = disk.folder / "data"
    often = {"replica.high.watermark.checkpoint.interval.ms": 20}
    broker = Millrace(tmp_path / "broker", SOON | SLOWLY | often, {"broker.data": data})
    try:
        broker.start()
        writer = Writer(broker.address, "states", seed=12)
        writer.client.create_topic("states", 1, COMPACTED | {"flush.messages": "1"})
        cuts = []
        for seed in range(2 * CUTS):
            wait_for_a_pass(data / "states-0", writer)
            for _ in range(seed % 3):
                writer.send(50)
            broker.kill()
            cuts.append(disk.cut(seed, reorder=seed % 2 == 1))
            broker.start()
            writer.assert_newest_are_there()
        assert sum(cut.writes_lost + cut.names_lost for cut in cuts) > 0, "the disk lost nothing"
        compact_at_full_speed(broker, writer)
        assert "cannot be compacted" not in broker.log_text()
        assert broker.stop()[0] == 0
        verified = run("log", "verify", data)
        assert verified.code == 0, verified.errors + verified.output
    finally:
        broker.close()
