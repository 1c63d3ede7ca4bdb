"""Records that are too old go in bounded time, whatever times their senders gave them."""

import time

import pytest

from conftest import running
from harness.batches import record_batch
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.wire import RawConnection

CHECK_MS, RETENTION_MS = 200, 1000
SOON_OLD = {"retention.ms": f"{RETENTION_MS}", "file.delete.delay.ms": "0"}
FOREVER = {"retention.ms": "-1", "file.delete.delay.ms": "0"}
INT64_MAX = (1 << 63) - 1
IN_2300 = 10_413_792_000_000


@pytest.fixture
def broker(broker_kind, tmp_path):
    """Its own, which looks for old records all the time."""
    own = broker_kind(tmp_path / "broker", {"log.retention.check.interval.ms": CHECK_MS})
    with running(own):
        yield own


@pytest.fixture
def writer(broker):
    client = Confluent(broker.address)
    yield client
    client.close()


def wait_for_bounds(writer: Confluent, topic: str, bounds: tuple[int, int]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while writer.bounds(topic, 0) != bounds:
        assert time.monotonic() < deadline, writer.bounds(topic, 0)


def now() -> int:
    return int(time.time() * 1000)


@pytest.mark.millrace
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_T09_times_of_the_future_keep_nothing_alive(broker, writer, topic, kind):
    """Millrace takes a segment for no younger than its last write; Apache Kafka keeps what claims
    to be of the future."""
    config = {
        **FOREVER,
        "segment.bytes": f"{1 << 20}",
        "message.timestamp.type": kind,
        "message.timestamp.after.max.ms": f"{INT64_MAX}",
    }
    writer.create_topic(topic, 1, config)
    with RawConnection(broker.address) as connection:
        for at, sent_at in enumerate([now(), IN_2300, INT64_MAX, now(), now()]):
            batch = record_batch([bytes(100_000)] * 5, time=sent_at)
            assert connection.produce_at(topic, 0, batch, 3) == (0, 5 * at)
    folder = broker.folder / "data" / f"{topic}-0"
    assert len(list(folder.glob("*.log"))) > 1
    writer.adjust(topic, "set", "retention.ms", f"{RETENTION_MS}")
    wait_for_bounds(writer, topic, (25, 25))
    lines = [line for line in broker.log_text().splitlines() if topic in line]
    assert len(lines) < 10, lines


def test_T11_an_idle_topic_is_emptied(broker, writer, topic):
    """Also of its active segment, to which nothing is written any more."""
    writer.create_topic(topic, 1, SOON_OLD)
    with RawConnection(broker.address) as connection:
        assert connection.produce(topic, 0, record_batch([b"1", b"2", b"3"], time=now()), 3) == 0
    wait_for_bounds(writer, topic, (3, 3))
    with RawConnection(broker.address) as connection:
        batch = record_batch([b"next"], time=now())
        assert connection.produce_at(topic, 0, batch, 3) == (0, 3)


def test_K05_segments_before_a_trimmed_start_go(broker, writer, topic):
    """Records are deleted up to the middle of the active segment, and what is behind them stays."""
    writer.create_topic(topic, 1, {**FOREVER, "segment.bytes": f"{1 << 20}"})
    with RawConnection(broker.address) as connection:
        for at in range(25):
            batch = record_batch([bytes(100_000)], time=now())
            assert connection.produce_at(topic, 0, batch, 3) == (0, at)
    folder = next(broker.folder.glob(f"**/{topic}-0"))
    assert len(list(folder.glob("*.log"))) == 3
    assert writer.trim(topic, 0, 23) == 23
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(list(folder.glob("*.log"))) > 1:
        assert time.monotonic() < deadline, sorted(folder.iterdir())
    assert writer.bounds(topic, 0) == (23, 25)
    assert [record.offset for record in writer.read(topic, 0)] == [23, 24]
