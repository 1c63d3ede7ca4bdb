"""What a start finds after stops, kills and losses: what it checks, what it repairs, what it leaves
alone. R01, R07 and R13 are numbers of the list of scenarios."""

import os
import shutil
import struct
import subprocess
import time

import pytest

from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS, ClientError
from harness.confluent import Confluent
from harness.paths import SOURCE
from harness.records import Record, numbered_records
from harness.wire import RawConnection

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

CLEAN_MARK = ".kafka_cleanshutdown"


@pytest.fixture
def stopped(tmp_path):
    """A broker that is stopped, with a hundred records in each of `orders` and `others`."""
    broker = Millrace(tmp_path / "broker", {"log.segment.bytes": 4096})
    try:
        broker.start()
        client = Confluent(broker.address)
        for topic in ("orders", "others"):
            client.create_topic(topic, 1)
            for at in range(0, 100, 10):
                client.produce(topic, numbered_records(100)[at : at + 10])
        stop(broker)
        yield broker
        broker.end()
    finally:
        broker.close()


def stop(broker) -> None:
    assert broker.stop()[0] == 0, broker.log_tail()


def data_of(broker):
    return broker.folder / "data"


def last_log(broker, topic="orders"):
    return sorted((data_of(broker) / f"{topic}-0").glob("*.log"))[-1]


def field(line: str, name: str) -> int:
    return int(line.split(f"{name}=")[1].split()[0])


def last_opened(broker) -> str:
    lines = [line for line in broker.log_text().splitlines() if "broker: opened" in line]
    return lines[-1]


def kill_while_loading(broker) -> None:
    """Ends the broker as soon as it has used the mark of the clean stop up."""
    mark = data_of(broker) / CLEAN_MARK
    assert mark.exists()
    with broker.log_path.open("ab") as log:
        process = subprocess.Popen(
            broker.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=broker.folder
        )
    deadline = time.monotonic() + DEADLINE_SECONDS
    while mark.exists():
        assert process.poll() is None and time.monotonic() < deadline, broker.log_tail()
    process.kill()
    process.wait()


def test_R01_a_crash_while_loading_is_not_counted_as_clean(stopped):
    kill_while_loading(stopped)
    assert not (data_of(stopped) / CLEAN_MARK).exists()
    log = last_log(stopped)
    os.truncate(log, log.stat().st_size - 10)
    stopped.start()
    stopped.wait_for_log_line("cut a torn tail", "orders-0")
    client = Confluent(stopped.address)
    # The last batch is gone; how many records it had is the client's choice.
    kept = [record.offset for record in client.read("orders", 0)]
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < 100
    assert len(client.read("others", 0)) == 100
    client.produce("orders", numbered_records(5))
    assert [record.offset for record in client.read("orders", 0)] == list(range(len(kept) + 5))


def test_a_crash_is_checked_for_what_was_written_since_the_last_stop(stopped):
    stopped.start()
    assert field(last_opened(stopped), "offsets_checked") == 0
    Confluent(stopped.address).produce("orders", numbered_records(5))
    stopped.kill()
    stopped.start()
    assert field(last_opened(stopped), "offsets_checked") == 5
    assert len(Confluent(stopped.address).read("orders", 0)) == 105


def test_a_missing_log_comes_back_empty_and_is_told(stopped):
    shutil.rmtree(data_of(stopped) / "orders-0")
    stopped.start()
    stopped.wait_for_log_line("WARN", "the log of a known topic is missing", "orders-0")
    client = Confluent(stopped.address)
    assert client.read("orders", 0) == []
    assert len(client.read("others", 0)) == 100
    missing = [line for line in stopped.log_text().splitlines() if "is missing" in line]
    assert len(missing) == 1, missing


@pytest.mark.parametrize("damage", ["garbage", "another id", "no folder"])
def test_R07_a_log_that_cannot_be_opened_stays_offline_and_as_it_is(stopped, damage):
    """The others start and serve; nothing is removed. Once it is mended, all of it is there."""
    folder = data_of(stopped) / "orders-0"
    metadata = folder / "partition.metadata"
    sound = metadata.read_text()
    if damage == "garbage":
        metadata.write_bytes(b"\xff\x00garbage")
    elif damage == "another id":
        metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    else:
        folder.rename(folder.parent / "aside")
        folder.write_text("no folder")
    stopped.start()
    stopped.wait_for_log_line("ERROR", "stays offline", "orders-0")
    client = Confluent(stopped.address)
    assert len(client.read("others", 0)) == 100
    with pytest.raises(ClientError):
        client.bounds("orders", 0)
    stop(stopped)
    if damage == "no folder":
        folder.unlink()
        (folder.parent / "aside").rename(folder)
    else:
        metadata.write_text(sound)
    stopped.start()
    assert len(Confluent(stopped.address).read("orders", 0)) == 100


def test_R13_deleted_records_stay_away(stopped):
    stopped.start()
    client = Confluent(stopped.address)
    assert client.trim("orders", 0, -1) == 100
    stopped.kill()
    stopped.start()
    client = Confluent(stopped.address)
    assert client.bounds("orders", 0) == (100, 100)
    client.produce("orders", [Record(b"key", b"next")])
    assert [(record.offset, record.value) for record in client.read("orders", 0)] == [(100, b"next")]


def test_folders_in_the_midst_of_something_are_tolerated(stopped):
    data = data_of(stopped)
    doomed = data / f"gone-0.{'0123456789abcdef' * 2}-delete"
    future = data / f"orders-0.{'0123456789abcdef' * 2}-future"
    for folder in (doomed, future):
        shutil.copytree(data / "orders-0", folder)
    (data / "cleaner-offset-checkpoint").write_text("0\n0\n")
    (data / "lost+found").mkdir()
    (data / "orders-0" / "notes.txt").write_text("mine")
    stopped.start()
    assert len(Confluent(stopped.address).read("orders", 0)) == 100
    stop(stopped)
    assert not doomed.exists()
    assert future.is_dir() and (data / "lost+found").is_dir()
    assert (data / "cleaner-offset-checkpoint").exists()
    assert (data / "orders-0" / "notes.txt").read_text() == "mine"


SEGMENTS = 10_000
START_SECONDS_MAX = 10


def make_segments(folder, batch: bytes) -> None:
    """So many segments of one batch each, without indexes; what a clean stop leaves beside them."""
    for offset in range(SEGMENTS):
        (folder / f"{offset:020}.log").write_bytes(struct.pack(">q", offset) + batch[8:])
    of_kafka = SOURCE / "tests/golden/segments/kafka-4.4.0/v2-trimmed-java44"
    nobody = of_kafka / "00000000000000000040.snapshot"
    shutil.copy(nobody, folder / f"{SEGMENTS:020}.snapshot")
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def test_ten_thousand_segments_without_indexes_do_not_hold_a_start_up(stopped):
    """What is in them is looked at when somebody asks for it."""
    stopped.start()
    client = Confluent(stopped.address)
    client.create_topic("many", 1)
    client.produce("many", [Record(b"key", b"value")])
    with RawConnection(stopped.address) as connection:
        batch = connection.fetch_batches("many", 0)
    stop(stopped)
    folder = data_of(stopped) / "many-0"
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    make_segments(folder, batch)
    started = time.monotonic()
    stopped.start()
    seconds = time.monotonic() - started
    assert seconds < START_SECONDS_MAX, f"started in {seconds:.1f} s"
    with RawConnection(stopped.address) as connection:
        for offset in (0, 4711, SEGMENTS - 1):
            found = connection.fetch_batches("many", 0, offset)
            assert struct.unpack_from(">q", found)[0] == offset
    assert Confluent(stopped.address).bounds("many", 0) == (0, SEGMENTS)
    open_files = len(os.listdir(f"/proc/{stopped.process.pid}/fd"))
    assert open_files < 200, open_files
    stopped.stop_seconds_max = 60
