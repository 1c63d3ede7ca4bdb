"""What is on disk is what Kafka's own tool reads, also of logs that Kafka wrote and Millrace took in
hand."""

import re
import shutil

import pytest

from conftest import running
from harness.broker import Millrace
from harness.confluent import Confluent, create_topic
from harness.dump import dump
from harness.paths import SOURCE
from harness.records import numbered_records

pytestmark = [pytest.mark.millrace]

GOLDEN = SOURCE / "tests" / "golden" / "segments"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SMALL_SEGMENTS = {"segment.bytes": "16384", "index.interval.bytes": "512"}


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker")
    with running(broker):
        yield broker


def stop(broker) -> None:
    assert broker.stop()[0] == 0, broker.log_tail()


def files_of(folder, *suffixes: str) -> list:
    found = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    assert found, f"no {suffixes} in {sorted(path.name for path in folder.iterdir())}"
    return found


def dump_all(folder) -> str:
    """Every file of a partition that the tool knows; its output for the logs."""
    dump(files_of(folder, ".index", ".timeindex"), "--index-sanity-check")
    dump(files_of(folder, ".index", ".timeindex"), "--verify-index-only")
    dump(files_of(folder, ".index", ".timeindex"))
    dump(files_of(folder, ".snapshot"))
    return dump(files_of(folder, ".log"), "--deep-iteration", "--print-data-log")


@pytest.mark.parametrize("time", ["CreateTime", "LogAppendTime"])
def test_kafkas_tool_reads_what_was_written(broker, time):
    create_topic(
        broker.address, "orders", 1, {**SMALL_SEGMENTS, "message.timestamp.type": time}
    )
    client = Confluent(broker.address)
    records = numbered_records(1000)
    for at, codec in enumerate(CODECS):
        for part in range(4):
            first = at * 200 + part * 50
            client.produce("orders", records[first : first + 50], codec=codec)
    stop(broker)
    folder = broker.folder / "data" / "orders-0"
    assert len(files_of(folder, ".log")) > 2
    printed = dump_all(folder)
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(1000))
    assert printed.count("isvalid: true") == printed.count("baseOffset:") >= 20
    assert f"{time}: " in printed
    for codec in CODECS:
        assert f"compresscodec: {codec} " in printed


def test_an_empty_partition_too(broker):
    create_topic(broker.address, "orders", 1)
    stop(broker)
    folder = broker.folder / "data" / "orders-0"
    assert "Log starting offset: 0" in dump(files_of(folder, ".log"), "--deep-iteration")


@pytest.mark.parametrize(
    "golden",
    ["kafka-4.4.0/v2-txn-java44", "kafka-4.4.0/v2-txn-franz", "kafka-2.8.2/v2-txn-java28"],
)
def test_what_stands_beside_a_log_is_made_again_from_it(broker, golden):
    """Kafka's log with transactions, without its indexes, snapshots and epochs: all of them come
    back, and those that must be the same are."""
    create_topic(broker.address, "orders", 1, {"index.interval.bytes": "512"})
    stop(broker)
    folder = broker.folder / "data" / "orders-0"
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in (GOLDEN / golden).glob("*.log"):
        shutil.copy(path, folder)
    (folder.parent / "recovery-point-offset-checkpoint").unlink()
    broker.start()
    stop(broker)
    for name in ("*.txnindex", "leader-epoch-checkpoint"):
        for path in (GOLDEN / golden).glob(name):
            made = folder / path.name
            assert (made.read_bytes() if made.exists() else b"") == path.read_bytes(), path.name
    last = max((GOLDEN / golden).glob("*.snapshot"))
    assert (folder / last.name).read_bytes() == last.read_bytes()
    dump_all(folder)
    printed = dump(files_of(folder, ".txnindex"))
    assert printed.count("producerId") == sum(
        path.stat().st_size for path in files_of(folder, ".txnindex")
    ) // 34, printed


def test_the_directory_of_another_broker_is_refused_and_stays_as_it_is(broker):
    records = numbered_records(10)
    create_topic(broker.address, "orders", 1)
    client = Confluent(broker.address)
    client.produce("orders", records)
    client.close()
    stop(broker)
    broker.settings["broker.id"] = 7
    with pytest.raises(AssertionError, match="found that of broker 1; set broker.id to 1"):
        broker.start()
    del broker.settings["broker.id"]
    broker.start()
    assert len(Confluent(broker.address).read("orders", 0)) == len(records)
