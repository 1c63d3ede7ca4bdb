"""Requests that lie about what they hold: the connection ends with one line in the log and one more
in the count, and no memory was taken for what was only announced. Records that open to more than a
topic bears are refused, their connection ends with a line and a count too, and all of them together
cost no more than the broker says."""

import gzip
import struct
from concurrent.futures import ThreadPoolExecutor

import lz4.frame
import pytest
import snappy
import zstandard

from harness.batches import GZIP, LZ4, SNAPPY, ZSTD, batch_around, message
from harness.confluent import Confluent
from harness.fetch_session import uvarint
from harness.http import Http
from harness.wire import API_FETCH, API_PRODUCE, RawConnection

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

API_METADATA, API_CREATE_TOPICS = 3, 19
CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_RECORD = 2, 10, 87
MIB = 1 << 20
NO_TAGS = b"\0"
MOST = struct.pack(">i", 0x7FFFFFFF)
BELOW_NULL = struct.pack(">i", -2)
ONE = struct.pack(">i", 1)
NAME = b"\0\1t"
COMPACT_MOST = b"\xff\xff\xff\xff\x0f"
PRODUCE_HEAD = struct.pack(">hhi", -1, 1, 1000)
FETCH_HEAD = struct.pack(">iiiib", -1, 0, 0, 0, 0)

LIES = {
    "string-beyond-the-rest": (API_METADATA, 1, ONE + b"\x7f\xfft"),
    "string-below-null": (API_METADATA, 1, ONE + b"\xff\xfet"),
    "null-where-none-may-be": (API_METADATA, 1, ONE + b"\xff\xff"),
    "count-of-2-billion": (API_METADATA, 1, MOST + NAME),
    "count-one-too-many": (API_METADATA, 1, struct.pack(">i", 2) + NAME),
    "count-below-null": (API_METADATA, 1, BELOW_NULL),
    "compact-count-of-4-billion": (API_METADATA, 9, NO_TAGS + COMPACT_MOST),
    "compact-string-beyond-the-rest": (API_METADATA, 9, NO_TAGS + b"\2" + COMPACT_MOST),
    "varint-of-6-bytes": (API_METADATA, 9, NO_TAGS + b"\x80\x80\x80\x80\x80\1"),
    "varint-without-end": (API_METADATA, 9, NO_TAGS + b"\xff" * 500),
    "4-billion-tags": (API_METADATA, 9, COMPACT_MOST),
    "tag-beyond-the-rest": (API_METADATA, 9, b"\1\0" + COMPACT_MOST),
    "2-billion-topics-to-fetch": (API_FETCH, 4, FETCH_HEAD + MOST),
    "2-billion-partitions-to-fetch": (API_FETCH, 4, FETCH_HEAD + ONE + NAME + MOST),
    "2-billion-topics-to-produce": (API_PRODUCE, 3, PRODUCE_HEAD + MOST),
    "2-billion-partitions-to-produce": (API_PRODUCE, 3, PRODUCE_HEAD + ONE + NAME + MOST),
    "records-of-2-gb": (API_PRODUCE, 3, PRODUCE_HEAD + ONE + NAME + ONE + bytes(4) + MOST),
    "records-below-null": (API_PRODUCE, 3, PRODUCE_HEAD + ONE + NAME + ONE + bytes(4) + BELOW_NULL),
    "2-billion-assignments": (API_CREATE_TOPICS, 0, ONE + NAME + bytes(6) + MOST),
    "2-billion-replicas": (API_CREATE_TOPICS, 0, ONE + NAME + bytes(6) + ONE + bytes(4) + MOST),
}


@pytest.fixture
def broker(own_broker):
    """Thousands of connections leave a line each: in a log that others look through, ports that are
    used again would be taken for theirs."""
    return own_broker


class PeakMemory:
    """What the broker's resident memory grew by at most since this was made, in bytes."""

    def __init__(self, broker):
        self.process = f"/proc/{broker.process.pid}"
        with open(f"{self.process}/clear_refs", "w") as peak:
            peak.write("5")
        self.before = self._bytes("VmRSS")

    def growth(self) -> int:
        return self._bytes("VmHWM") - self.before

    def _bytes(self, name: str) -> int:
        with open(f"{self.process}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields[name].split()[0]) << 10


def closed(broker, reason: str) -> float:
    name = "millrace_kafka_connections_closed_total"
    return Http(broker.http_address()).metrics().value(name, reason=reason)


def bad_requests(broker) -> float:
    return closed(broker, "bad_request")


def bombs(broker) -> float:
    return closed(broker, "decompression_bomb")


class NewLines:
    """What a broker has logged of a connection since this was made: ports are used again."""

    def __init__(self, broker):
        self.broker = broker
        self.logged_before = len(broker.log_text())

    def about(self, port: int) -> list[str]:
        self.broker.wait_for_log_line(f":{port} ")
        lines = self.broker.log_text()[self.logged_before :].splitlines()
        return [line for line in lines if f":{port} " in line]


@pytest.mark.parametrize("kind", LIES)
def test_a_lie_ends_its_connection_and_costs_nothing(broker, kind):
    counted, lines = bad_requests(broker), NewLines(broker)
    peak = PeakMemory(broker)
    with RawConnection(broker.address) as liar:
        liar.send_request(*LIES[kind])
        assert liar.closed_by_broker()
        assert peak.growth() < 2 * MIB
        assert bad_requests(broker) == counted + 1
        (line,) = lines.about(liar.port)
        assert " WARN " in line and "bad request" in line, line


def test_ten_thousand_lies_leave_no_trace(own_broker):
    with RawConnection(own_broker.address) as first:
        first.ask_api_versions()
    counted = bad_requests(own_broker)
    peak = PeakMemory(own_broker)
    lies = list(LIES.values())
    for n in range(10_000):
        with RawConnection(own_broker.address) as liar:
            liar.send_request(*lies[n % len(lies)])
            assert liar.closed_by_broker()
    assert bad_requests(own_broker) == counted + 10_000
    assert peak.growth() < 16 * MIB


@pytest.mark.parametrize("version, name", [(1, b"\0\0"), (9, b"\1\0")])
def test_a_request_of_nothing_but_empty_elements_is_answered_once(own_broker, version, name):
    """A megabyte of them, half a million topics, all of the same name."""
    count = MIB // 2 - 100
    head = struct.pack(">i", count) if version == 1 else NO_TAGS + uvarint(count + 1)
    tail = b"" if version == 1 else bytes(3) + NO_TAGS
    peak = PeakMemory(own_broker)
    with RawConnection(own_broker.address, timeout=60) as greedy:
        greedy.send_request(API_METADATA, version, head + name * count + tail)
        assert len(greedy.receive_frame()) < 1000
    assert peak.growth() < 48 * MIB


def test_a_request_for_many_topics_that_are_not_there_is_bounded(own_broker):
    """As many different names as a megabyte holds."""
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    names = [bytes((a, b, c)) for a in letters for b in letters for c in letters][: MIB // 5 - 100]
    body = struct.pack(">i", len(names)) + b"".join(b"\0\3" + name for name in names)
    peak = PeakMemory(own_broker)
    with RawConnection(own_broker.address, timeout=60) as greedy:
        greedy.send_request(API_METADATA, 4, body + b"\0")
        assert len(greedy.receive_frame()) > 12 * len(names), "an answer to each"
    assert peak.growth() < 128 * MIB


def test_ten_thousand_topics_in_a_request_are_bounded(own_broker):
    """As many as one request may make. Each is answered with all settings of a topic."""
    names = [b"topic-%05d" % n for n in range(10_000)]
    body = struct.pack(">i", len(names))
    for name in names:
        body += struct.pack(f">h{len(name)}sihii", len(name), name, 1, 1, 0, 0)
    body += struct.pack(">i?", 30_000, True)  # to be validated
    peak = PeakMemory(own_broker)
    with RawConnection(own_broker.address, timeout=60) as greedy:
        greedy.send_request(API_CREATE_TOPICS, 4, body)
        answer = greedy.receive_frame()
    assert answer.count(b"topic-") == len(names)
    assert peak.growth() < 64 * MIB


# ---- records that open to more than they seem ----


def zeros(mebibytes: int) -> dict[int, bytes]:
    """By codec."""
    data = bytes(mebibytes * MIB)
    return {
        GZIP: gzip.compress(data, mtime=0),
        SNAPPY: snappy.compress(data),
        LZ4: lz4.frame.compress(data),
        ZSTD: zstandard.compress(data),
    }


def refusals(address: str, topic: str, records: bytes, version: int, count: int) -> set[int]:
    """The errors of `count` requests, each on a connection of its own, which ends with the answer."""
    errors = set()
    for _ in range(count):
        with RawConnection(address, timeout=60) as connection:
            errors.add(connection.produce(topic, 0, records, version))
    return errors


def refusals_of_messages(address: str, topic: str, messages: bytes, count: int) -> set[int]:
    errors = set()
    for _ in range(count):
        with RawConnection(address, timeout=60) as connection:
            errors.add(connection.produce_messages(topic, 0, messages))
    return errors


@pytest.fixture
def bounded_topic(broker, topic) -> str:
    client = Confluent(broker.address)
    client.create_topic(topic, 1, {"max.decompressed.message.bytes": "65536"})
    yield topic
    assert client.bounds(topic, 0) == (0, 0), "something was stored"
    client.close()


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_answered_and_ends_its_connection(broker, bounded_topic, codec):
    """A producer that means no harm would send its records again if it was not answered."""
    counted, lines = bombs(broker), NewLines(broker)
    bomb = batch_around(zeros(1)[codec], 1, codec)
    with RawConnection(broker.address, timeout=60) as bomber:
        assert bomber.produce(bounded_topic, 0, bomb, 7) == MESSAGE_TOO_LARGE
        assert bomber.closed_by_broker()
        (line,) = lines.about(bomber.port)
    assert " WARN " in line and "decompression bomb" in line and bounded_topic in line, line
    assert bombs(broker) == counted + 1


def test_no_answer_is_lost_to_what_stands_behind_a_bomb(broker, bounded_topic):
    """The system takes back what was sent when a connection is closed over bytes that nobody has
    read."""
    bomb = batch_around(zeros(1)[GZIP], 1, GZIP)
    counted, lines = bombs(broker), NewLines(broker)
    with RawConnection(broker.address, timeout=60) as bomber:
        for _ in range(500):
            bomber.send_produce(bounded_topic, 0, bomb, 7)
        assert bomber.receive_produced(bounded_topic, 0)[0] == MESSAGE_TOO_LARGE
        while bomber.socket.recv(4096):  # answers to what had begun; a reset would raise here
            pass
        assert len(lines.about(bomber.port)) == 1
    assert bombs(broker) == counted + 1


def test_a_bomb_without_acks_ends_its_connection(broker, bounded_topic):
    counted = bombs(broker)
    with RawConnection(broker.address, timeout=60) as bomber:
        bomb = batch_around(zeros(1)[GZIP], 1, GZIP)
        bomber.send_produce(bounded_topic, 0, bomb, 7, acks=0)
        assert bomber.closed_by_broker()
    assert bombs(broker) == counted + 1


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_thousand_bombs_cost_what_one_may(broker, bounded_topic, codec):
    bomb = batch_around(zeros(1)[codec], 1, codec)
    assert refusals(broker.address, bounded_topic, bomb, 7, 100) == {MESSAGE_TOO_LARGE}
    peak = PeakMemory(broker)
    assert refusals(broker.address, bounded_topic, bomb, 7, 1000) == {MESSAGE_TOO_LARGE}
    assert peak.growth() < 32 * MIB


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_bombs_together_cost_no_more_than_a_broker_bears(own_broker, topic, codec):
    """On sixteen connections at once: 128 MiB for the one that is opened, 8 MiB for each of the four
    workers and as much again that the allocator keeps, and what the records were sent in."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 4)
    bomb = batch_around(zeros(160)[codec], 1, codec)

    def throw(at: int) -> set[int]:
        errors = set()
        for _ in range(2):
            with RawConnection(own_broker.address, timeout=120) as connection:
                errors.add(connection.produce(topic, at % 4, bomb, 7))
        return errors

    peak = PeakMemory(own_broker)
    with ThreadPoolExecutor(16) as throwers:
        assert set().union(*throwers.map(throw, range(16))) == {MESSAGE_TOO_LARGE}
    assert peak.growth() < (128 + 4 * 16 + 48) * MIB
    assert client.bounds(topic, 0) == (0, 0)
    client.close()


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_bombs_in_old_wrappers_cost_what_one_may(broker, bounded_topic, codec, magic):
    bomb = message(zeros(1)[codec], codec=codec, magic=magic)
    peak = PeakMemory(broker)
    refused = refusals_of_messages(broker.address, bounded_topic, bomb, 300)
    assert refused == {MESSAGE_TOO_LARGE}
    assert peak.growth() < 32 * MIB


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_in_a_wrapper_is_not_opened(broker, bounded_topic, magic):
    """A hundred of them, around a bomb."""
    nested = message(zeros(1)[GZIP], codec=GZIP, magic=magic)
    for _ in range(100):
        nested = message(gzip.compress(nested, mtime=0), codec=GZIP, magic=magic)
    peak = PeakMemory(broker)
    with RawConnection(broker.address) as connection:
        for _ in range(1000):
            error = connection.produce_messages(bounded_topic, 0, nested)
            assert error in (CORRUPT_MESSAGE, INVALID_RECORD)
    assert peak.growth() < 16 * MIB


def test_a_snappy_block_that_claims_4_gb_gets_none(broker, bounded_topic):
    lie = batch_around(COMPACT_MOST + b"\0a", 1, SNAPPY)
    peak = PeakMemory(broker)
    refused = refusals(broker.address, bounded_topic, lie, 7, 100)
    assert peak.growth() < 8 * MIB
    assert len(refused) == 1 and refused != {0}


def test_two_billion_records_in_a_batch_of_none(broker, bounded_topic):
    peak = PeakMemory(broker)
    for codec, nothing in ((0, b""), (GZIP, gzip.compress(b""))):
        lie = batch_around(nothing, 0x7FFFFFFF, codec)
        assert 0 not in refusals(broker.address, bounded_topic, lie, 7, 100)
    assert peak.growth() < 8 * MIB
