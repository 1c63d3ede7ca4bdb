"""The power goes, again and again: the broker is killed, and its disk loses what was not synced."""

import os
import re

import pytest

from conftest import PARTITIONS
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.load import Load
from harness.lossy_disk import LossyDisk
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
                cuts.append(disk.cut(seed))
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
        told = re.findall(r"cut a torn tail.* bytes=(\d+)", broker.log_text())
        assert told and all(int(size) > 0 for size in told), broker.log_tail()
        assert broker.stop()[0] == 0
        verified = run("log", "verify", data)
        assert verified.code == 0, verified.errors + verified.output
    finally:
        broker.close()
