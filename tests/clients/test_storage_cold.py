"""Old records are no longer in memory: who fetches them waits for the disk, and nobody else does, since none of the
threads that serve connections reads from it."""

import os
from pathlib import Path

import pytest

from conftest import running
from harness.broker import Millrace
from harness.volume import fill, read_all

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

BYTES = 48 << 20
VALUE_BYTES = 200_000
SEGMENT_BYTES = 16 << 20


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker", {"log.segment.bytes": SEGMENT_BYTES})
    broker.stop_seconds_max = 60
    with running(broker):
        yield broker


def read_by_thread(broker) -> dict[str, int]:
    """Bytes that each thread has had fetched from the disk, by its name."""
    read = {}
    for task in Path(f"/proc/{broker.process.pid}/task").iterdir():
        counts = dict(line.split(": ") for line in (task / "io").read_text().splitlines())
        name = (task / "comm").read_text().strip()
        read[name] = read.get(name, 0) + int(counts["read_bytes"])
    return read


def forget(broker) -> bool:
    """Takes the records out of memory; false where they are in memory for good."""
    gone = True
    for log in (broker.folder / "data").glob("orders-0/*.log"):
        descriptor = os.open(log, os.O_RDWR)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
            gone = False
        except BlockingIOError:
            pass
        os.close(descriptor)
    return gone


def test_no_thread_that_serves_connections_reads_from_the_disk(broker):
    count, size = fill(broker.address, "orders", BYTES, VALUE_BYTES)
    if not forget(broker):
        pytest.skip("the temporary folder is in memory: nothing of it is ever read from a disk")
    before = read_by_thread(broker)
    assert read_all(broker.address, "orders", count) == size
    after = read_by_thread(broker)
    grown = {name: read - before.get(name, 0) for name, read in after.items()}
    assert {name: read for name, read in grown.items() if read and "worker" not in name} == {}
    assert sum(grown.values()) > BYTES * 0.9
