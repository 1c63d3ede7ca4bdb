"""What was written stays in the page cache over a kill: the broker that follows reads it without the
disk."""

from pathlib import Path

import pytest

from conftest import running
from harness.broker import Millrace
from harness.volume import fill, read_all

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

BYTES = 1 << 30
VALUE_BYTES = 900_000
PROGRAM_BYTES_MAX = 64 << 20
FILE_SYSTEM_BYTES_MAX = 8 << 20
"""Of the disk's own maps: what was recovered is brought to disk meanwhile, and looks for room there. The
records are a hundred times as much."""


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker", {"log.segment.bytes": 256 << 20})
    broker.stop_seconds_max = 60  # all of it goes to the disk then
    with running(broker):
        yield broker


def bytes_from_disk(broker) -> int:
    text = Path(f"/proc/{broker.process.pid}/io").read_text()
    return int(dict(line.split(": ") for line in text.splitlines())["read_bytes"])


@pytest.mark.alone
def test_a_gibibyte_is_read_back_without_the_disk_after_a_kill(broker):
    count, size = fill(broker.address, "orders", BYTES, VALUE_BYTES)
    broker.kill()
    broker.start()
    # Recovery reads all that was never flushed; the program itself may come from the disk.
    before = bytes_from_disk(broker)
    assert before < PROGRAM_BYTES_MAX
    assert read_all(broker.address, "orders", count) == size
    assert bytes_from_disk(broker) - before <= FILE_SYSTEM_BYTES_MAX
