"""Records do not pass through the broker's memory more often than they must: what it asks of the
kernel is counted by strace, what it moves by its own metrics.

Produced bytes enter the process once and leave it by one gathered write for each partition of a
request; fetched bytes never enter it. A thread that wakes up receives once and sends once, however
much has come."""

import bisect
import os
import re
import select
import signal
import struct
import subprocess
import time
from dataclasses import dataclass

import pytest

from harness.batches import record_batch
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.http import Http
from harness.records import Record
from harness.wire import API_FETCH, API_PRODUCE, RawConnection, codecs_of_batches, request_frame

pytestmark = pytest.mark.millrace

RECORDS, RECORD_BYTES = 2000, 10_000
LARGE_BYTES, PIECE_BYTES = 4 << 20, 256 << 10
ROUNDS, BURST = 40, 4
WAITS = ("epoll_wait", "epoll_pwait", "epoll_pwait2")
RECEIVES = ("recvfrom", "recvmsg", "recvmmsg", "read", "readv")
SENDS = ("sendto", "sendmsg", "sendmmsg", "write", "writev")
WRITES = ("pwrite64", "pwritev", "pwritev2")
READS = ("read", "readv", "pread64", "preadv", "preadv2")
OTHERS = ("sendfile", "splice", "copy_file_range")
CALL = re.compile(r"(\w+)\((?:\d+<(\w+:\[.*?\]|[^>]*)>)?.* = (-?\d+)(?: |$)")
TURN_SECONDS = 0.001
"""How long a connection keeps its shard from others with what has come together."""


@dataclass
class Call:
    thread: int
    name: str
    target: str
    """The file or socket of its first argument, as strace describes it."""
    result: int
    at: float
    """When it began, in seconds."""


def parts_of(line: str) -> tuple[int, float, str]:
    """Of a line of strace: the thread, the time and the call."""
    thread, at, text = line.split(maxsplit=2)
    return int(thread), float(at), text.strip()


class Trace:
    """What a broker asked of the kernel between two looks."""

    def __init__(self, broker, log):
        self.log = log
        names = {*WAITS, *RECEIVES, *SENDS, *WRITES, *READS, *OTHERS}
        self.tracer = subprocess.Popen(
            [
                *("strace", "-f", "-ttt", "-yy", "-s", "0", "-e", f"trace={','.join(sorted(names))}"),
                *("-o", str(log), "-p", str(broker.process.pid)),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        threads = len(os.listdir(f"/proc/{broker.process.pid}/task"))
        attached = self.tracer.stderr.readline()
        assert "attached" in attached and str(threads) in attached, attached

    def _threads_wait(self) -> bool:
        """Whether each thread that waits for events is at it again. Who is answered may know of a call
        before the tracer does, and one that has not ended when the tracer lets go is not told."""
        last, waiters = {}, set()
        for line in self.log.read_text().splitlines():
            thread, _, last[thread] = parts_of(line)
            if last[thread].startswith(WAITS):
                waiters.add(thread)
        return all(
            last[thread].startswith(WAITS) and not CALL.match(last[thread]) for thread in waiters
        )

    def calls(self) -> list[Call]:
        """All of them, once the tracer has let go of the broker."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self._threads_wait():
            assert time.monotonic() < deadline, self.log.read_text()[-2000:]
            select.select([], [], [], 0.01)  # between two looks
        self.tracer.send_signal(signal.SIGINT)
        self.tracer.wait(timeout=DEADLINE_SECONDS)
        found, begun = [], {}
        for line in self.log.read_text().splitlines():
            thread, at, text = parts_of(line)
            if text.endswith("<unfinished ...>"):
                begun[thread] = at, text.removesuffix("<unfinished ...>")
                continue
            if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", text):
                at, text = begun.pop(thread, (at, ""))
                text += resumed[1]
            if match := CALL.match(text):
                found.append(Call(thread, match[1], match[2] or "", int(match[3]), at))
        return found

    def close(self) -> None:
        if self.tracer.poll() is None:
            self.tracer.kill()
            self.tracer.wait()


@pytest.fixture
def trace(own_broker, tmp_path):
    begun = []

    def begin() -> Trace:
        begun.append(Trace(own_broker, tmp_path / f"strace-{len(begun)}.log"))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


class Moved:
    """What the broker's own count of bytes has grown by."""

    def __init__(self, broker):
        self.http = Http(broker.http_address())
        self.before = self._now()

    def bytes(self) -> tuple[float, float]:
        """Sent from memory, and by sendfile. Asking moves some by itself."""
        now = self._now()
        return now[0] - self.before[0], now[1] - self.before[1]

    def _now(self) -> tuple[float, float]:
        metrics = self.http.metrics()
        name = "millrace_network_sent_bytes_total"
        return metrics.value(name, **{"from": "memory"}), metrics.value(name, **{"from": "file"})


def of_connection(calls: list[Call], names, port: int) -> list[Call]:
    """Also those that failed."""
    return [call for call in calls if call.name in names and f":{port}]" in call.target]


def bytes_of(calls: list[Call]) -> int:
    return sum(max(call.result, 0) for call in calls)


def of_logs(calls: list[Call], names) -> list[Call]:
    return [call for call in calls if call.name in names and call.target.endswith(".log")]


def within_a_turn(sends: list[Call], receives: list[Call]) -> list[Call]:
    """Those that answer what was received less than a turn before. Later ones were held up, by a busy
    machine, and others have had their turn between them."""
    moments = sorted(call.at for call in receives)
    return [
        send
        for send in sends
        if send.at - moments[bisect.bisect(moments, send.at) - 1] < TURN_SECONDS
    ]


def wake_ups(calls: list[Call], thread: int) -> int:
    """And one more: the wait that was under way when the tracer came."""
    return 1 + sum(c.name in WAITS and c.thread == thread and c.result > 0 for c in calls)


def produce_body(topic: str, batches: dict[int, bytes]) -> bytes:
    """Of Produce v3 with these batches by partition, for acks=all."""
    name = topic.encode()
    body = struct.pack(f">hhiih{len(name)}si", -1, -1, 10_000, 1, len(name), name, len(batches))
    for partition, batch in batches.items():
        body += struct.pack(">ii", partition, len(batch)) + batch
    return body


def one_record(value_bytes: int) -> bytes:
    return record_batch([os.urandom(value_bytes)])


def test_fetch_sends_files_and_produce_gathers(own_broker, topic, trace):
    """By a real client, over many requests."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    traced = trace()
    moved = Moved(own_broker)
    records = [Record(b"k", os.urandom(RECORD_BYTES)) for _ in range(RECORDS)]
    client.produce(topic, records)
    assert len(client.read(topic, 0)) == RECORDS
    from_memory, from_files = moved.bytes()

    calls = traced.calls()
    stored = RECORDS * RECORD_BYTES
    sent_as_files = bytes_of([c for c in calls if c.name == "sendfile"])
    written = [c.result for c in of_logs(calls, WRITES)]
    logs = (own_broker.folder / "data" / f"{topic}-0").glob("*.log")
    batches = sum(len(codecs_of_batches(log.read_bytes())) for log in logs)
    assert sent_as_files >= stored
    assert from_files == sent_as_files, "the metric counts what the kernel was asked for"
    assert from_memory < stored / 50
    assert sum(written) >= stored
    # Whole batches at a time: headers and bodies of a request go in one gathered write.
    assert len(written) <= batches < RECORDS


@pytest.mark.alone  # on a busy machine requests take longer than a turn
def test_a_wake_up_is_one_receive_and_one_send(own_broker, topic, trace):
    """Requests one by one, and some that come together."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    batch = one_record(100)
    with RawConnection(own_broker.address) as connection:
        assert connection.produce(topic, 0, batch, 3) == 0
        traced = trace()
        for _ in range(ROUNDS):
            assert connection.produce(topic, 0, batch, 3) == 0
        calls = traced.calls()
        receives = of_connection(calls, RECEIVES, connection.port)
        sends = of_connection(calls, SENDS, connection.port)
        threads = {c.thread for c in receives + sends}
        assert len(threads) == 1, "a connection belongs to one shard"
        assert len(receives) == ROUNDS, "none in vain"
        assert len(sends) == ROUNDS
        assert len(of_logs(calls, WRITES)) == ROUNDS
        assert len(receives) <= wake_ups(calls, threads.pop())

        # Few enough to be done within the millisecond after which others get their turn, traced.
        traced = trace()
        for _ in range(ROUNDS):
            connection.send(request_frame(API_PRODUCE, 3, produce_body(topic, {0: batch})) * BURST)
            for _ in range(BURST):
                assert connection.receive_produced(topic, 0)[0] == 0
        calls = traced.calls()
        receives = of_connection(calls, RECEIVES, connection.port)
        sends = of_connection(calls, SENDS, connection.port)
        woken = wake_ups(calls, receives[0].thread)
        assert len(receives) <= woken
        in_time = within_a_turn(sends, receives)
        assert len(in_time) <= woken
        assert len(of_logs(calls, WRITES)) == BURST * ROUNDS, "one for each request"
        assert len(in_time) < BURST * ROUNDS * 3 / 4, "answers that are ready together leave together"


def test_produced_bytes_enter_once_and_leave_by_one_write_for_each_partition(
    own_broker, topic, trace
):
    client = Confluent(own_broker.address)
    client.create_topic(topic, 3)
    batches = {partition: one_record(200_000) for partition in range(3)}
    body = produce_body(topic, batches)
    with RawConnection(own_broker.address) as connection:
        connection.ask(API_PRODUCE, 3, body)
        frame_bytes = len(request_frame(API_PRODUCE, 3, body))
        traced = trace()
        for _ in range(ROUNDS):
            connection.ask(API_PRODUCE, 3, body)
        calls = traced.calls()
        received = bytes_of(of_connection(calls, RECEIVES, connection.port))
        written = [c.result for c in of_logs(calls, WRITES)]
        assert received == ROUNDS * frame_bytes
        assert sorted(written) == sorted([len(batch) for batch in batches.values()] * ROUNDS)
        assert of_logs(calls, READS) == [], "nothing of it is read back"


def test_a_large_batch_is_written_in_pieces(own_broker, topic, trace):
    """Others of its shard run between them. Unit tests link the storage; here it is a plugin that was loaded, and has to
    be known as one that can."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1, {"max.message.bytes": str(2 * LARGE_BYTES)})
    batch = one_record(LARGE_BYTES)
    with RawConnection(own_broker.address) as connection:
        traced = trace()
        assert connection.produce(topic, 0, batch, 3) == 0
        written = [c.result for c in of_logs(traced.calls(), WRITES)]
        assert sum(written) == len(batch), "and nothing a second time"
        assert max(written) <= PIECE_BYTES
        assert connection.fetch_batches(topic, 0)[61:] == batch[61:]


def test_fetched_bytes_never_enter(own_broker, topic, trace):
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    batch = one_record(200_000)
    with RawConnection(own_broker.address) as connection:
        for _ in range(ROUNDS):
            assert connection.produce(topic, 0, batch, 3) == 0
        stored = len(connection.fetch_batches(topic, 0))
        moved = Moved(own_broker)
        traced = trace()
        fetched = sum(len(connection.fetch_batches(topic, 0)) for _ in range(ROUNDS))
        calls = traced.calls()
        from_memory, from_files = moved.bytes()
        assert fetched == ROUNDS * stored == from_files
        sent = of_connection(calls, SENDS, connection.port)
        as_files = of_connection(calls, OTHERS, connection.port)
        assert bytes_of(as_files) == fetched
        assert bytes_of(sent) < ROUNDS * 200, "heads of answers alone"
        assert len(sent) <= ROUNDS, "one for each answer, in front of its file"
        # Where a batch begins is looked up; its records are not.
        assert bytes_of(of_logs(calls, READS)) < fetched / 50
        assert from_memory < fetched / 50


def old_messages(connection: RawConnection, topic: str) -> int:
    """Bytes of Fetch v1, which old clients send and which is answered in format V0."""
    name = topic.encode()
    asked = struct.pack(">iiii", -1, 1000, 1, 1)
    asked += struct.pack(f">h{len(name)}siiqi", len(name), name, 1, 0, 0, 50 << 20)
    return len(connection.ask(API_FETCH, 1, asked))


def test_an_old_reader_is_served_by_workers_and_takes_no_file_from_others(own_broker, topic, trace):
    """What it reads is made in memory, and read from the log, by threads that serve no connection."""
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    batch = one_record(200_000)
    with RawConnection(own_broker.address) as connection, RawConnection(own_broker.address) as old:
        for _ in range(ROUNDS):
            assert connection.produce(topic, 0, batch, 3) == 0
        stored = len(connection.fetch_batches(topic, 0))
        traced = trace()
        converted = fetched = 0
        for _ in range(ROUNDS):
            converted += old_messages(old, topic)
            fetched += len(connection.fetch_batches(topic, 0))
        calls = traced.calls()
    assert fetched == ROUNDS * stored
    assert converted >= ROUNDS * len(batch)
    assert bytes_of(of_connection(calls, OTHERS, connection.port)) == fetched
    assert of_connection(calls, OTHERS, old.port) == []
    ports = (f":{old.port}]", f":{connection.port}]")
    served = {c.thread for c in calls if any(port in c.target for port in ports)}
    reads = of_logs(calls, READS)
    assert bytes_of([c for c in reads if c.thread not in served]) >= converted * 0.9
    # Where a batch begins is looked up, no more.
    assert bytes_of([c for c in reads if c.thread in served]) < converted / 50


def test_without_files_the_count_shows_it(tmp_path, topic):
    """That the counts above can tell: storage in memory has no files to send."""
    broker = Millrace(tmp_path / "memory", settings={"storage.plugin": "memory"})
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic(topic, 1)
        batch = one_record(200_000)
        with RawConnection(broker.address) as connection:
            assert connection.produce(topic, 0, batch, 3) == 0
            moved = Moved(broker)
            fetched = len(connection.fetch_batches(topic, 0))
            from_memory, from_files = moved.bytes()
        assert from_files == 0 and from_memory > fetched
        client.close()
        broker.end()
    finally:
        broker.close()
