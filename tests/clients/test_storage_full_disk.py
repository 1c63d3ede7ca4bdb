"""A disk that fills up: producers are told to try again, readers and deletions go on, writing
resumes by itself. R11 is a number of the list of scenarios."""

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from conftest import running
from harness.broker import Millrace
from harness.client import ClientError
from harness.confluent import Confluent
from harness.records import Record
from harness.wire import RawConnection

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

KAFKA_STORAGE_ERROR = 56
PRODUCE = 7
"""A version whose clients know of that error; older ones are told to look for the leader again."""
EX_IOERR = 74
DISK_BYTES = 32 << 20
RESUMES_SECONDS_MAX = 60


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def broker(small_disk, tmp_path):
    """Its data is on the small disk, its log lines are not."""
    broker = Millrace(
        tmp_path / "broker",
        {"log.segment.bytes": 1 << 20, "log.retention.check.interval.ms": 200},
        {"broker.data": small_disk},
    )
    with running(broker):
        yield broker


@pytest.fixture
def batch(broker) -> bytes:
    """Of 64 KiB."""
    client = Confluent(broker.address)
    for topic in ("orders", "others"):
        client.create_topic(topic, 1)
    client.produce("orders", [Record(b"key", os.urandom(1 << 16))])
    with RawConnection(broker.address) as connection:
        return connection.fetch_batches("orders", 0)


def fill(broker, topic: str, batch: bytes) -> tuple[int, int]:
    """Sends until it is refused; the number of batches taken, and the error."""
    with RawConnection(broker.address) as connection:
        for taken in range(2 * DISK_BYTES // len(batch)):
            if error := connection.produce(topic, 0, batch, PRODUCE):
                return taken, error
    raise AssertionError("the disk does not fill up")


def wait_until_taken(broker, topic: str, batch: bytes) -> None:
    deadline = time.monotonic() + RESUMES_SECONDS_MAX
    with RawConnection(broker.address) as connection:
        while error := connection.produce(topic, 0, batch, PRODUCE):
            assert error == KAFKA_STORAGE_ERROR
            assert time.monotonic() < deadline, broker.log_tail()


def free_bytes(folder) -> int:
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def leave_nothing(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    assert free_bytes(folder) == 0
    return filler


def test_producers_are_told_to_try_again_and_readers_go_on(broker, batch, small_disk):
    taken, error = fill(broker, "orders", batch)
    assert error == KAFKA_STORAGE_ERROR
    assert taken > DISK_BYTES * 3 // 4 // len(batch)
    assert fill(broker, "others", batch) == (0, KAFKA_STORAGE_ERROR)
    assert free_bytes(small_disk) > 0, "something is kept for what goes on"
    client = Confluent(broker.address)
    assert client.bounds("orders", 0) == (0, taken + 1)
    assert len(client.read("orders", 0)) == taken + 1
    broker.wait_for_log_line("the disk is full", "orders-0")
    client.adjust("orders", "set", "retention.bytes", str(4 << 20))
    wait_until_taken(broker, "orders", batch)
    wait_until_taken(broker, "others", batch)


def test_deleting_records_makes_room(broker, batch):
    taken, _ = fill(broker, "orders", batch)
    client = Confluent(broker.address)
    assert client.trim("orders", 0, taken - 10) == taken - 10
    wait_until_taken(broker, "others", batch)
    assert client.bounds("orders", 0) == (taken - 10, taken + 1)


def test_a_topic_that_cannot_be_made_says_why_and_the_controller_stays(broker, batch, small_disk):
    """Nothing is left on the disk, also not what is kept for what goes on."""
    fill(broker, "orders", batch)
    filler = leave_nothing(small_disk)
    client = Confluent(broker.address)
    with pytest.raises(ClientError) as refusal:
        client.create_topic("more", 1)
    assert refusal.value.code == KAFKA_STORAGE_ERROR
    assert "not the controller any more" not in broker.log_text()
    filler.unlink()
    client.create_topic("more", 1)
    client.delete_topic("orders")
    wait_until_taken(broker, "more", batch)


def test_R11_a_restart_after_the_disk_was_full_serves_again(broker, batch):
    fill(broker, "orders", batch)
    client = Confluent(broker.address)
    client.delete_topic("orders")
    wait_until_taken(broker, "others", batch)
    fill(broker, "others", batch)
    client.adjust("others", "set", "retention.bytes", str(8 << 20))
    broker.kill()
    broker.start()
    wait_until_taken(broker, "others", batch)
    assert broker.stop()[0] == 0, broker.log_tail()
    broker.start()
    wait_until_taken(broker, "others", batch)
    client = Confluent(broker.address)
    # Readers may have asked for a coordinator, whose topic was made.
    assert [name for name in client.list_topics() if not name.startswith("__")] == ["others"]
    start, end = client.bounds("others", 0)
    assert [record.offset for record in client.read("others", 0)] == list(range(start, end))


def test_a_stop_that_cannot_write_all_says_so_by_its_exit_code(broker, batch, small_disk):
    taken, _ = fill(broker, "orders", batch)
    filler = leave_nothing(small_disk)
    assert broker.stop()[0] == EX_IOERR, broker.log_tail()
    filler.unlink()
    broker.start()
    assert len(Confluent(broker.address).read("orders", 0)) == taken + 1


def test_a_disk_that_others_fill_takes_no_log_offline(broker, batch, small_disk):
    """Nothing was kept for us then: the system refuses the write itself."""
    foreign = small_disk / "foreign"
    with foreign.open("wb") as file, pytest.raises(OSError):
        while True:
            file.write(bytes(1 << 20))
            file.flush()
    taken, error = fill(broker, "orders", batch)
    assert error == KAFKA_STORAGE_ERROR
    assert len(Confluent(broker.address).read("orders", 0)) == taken + 1
    foreign.unlink()
    wait_until_taken(broker, "orders", batch)
    assert len(Confluent(broker.address).read("orders", 0)) == taken + 2
