"""Thousands of connections in one process, most of which do not behave:

python -m harness.crowd ADDRESS TOPIC HUGE_TOPIC HUGE_PARTITIONS '{"polite": 3000, "unread": 500}'

Says `ready` once all are connected and every polite one was answered, and ends at the end of its
input, with a line of JSON: of each kind what became of it."""

import functools
import itertools
import json
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from harness.batches import record_batch
from harness.wire import (
    API_FETCH,
    API_PRODUCE,
    RawConnection,
    fetch_body,
    produce_body,
    request_frame,
)

API_METADATA = 3
PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 7, 4, 1
_never = threading.Event()
POLITE_SECONDS = 5.0
"""How often each of the polite ones asks."""
PIPELINE = 64
HUGE_PART_BYTES = 1_000_000
LARGE_BATCH_BYTES = 64_000_000
"""The topic has to allow it."""
TRICKLED_BYTES = 10 << 20


class Member:
    """One connection. Answers are counted, and thrown away."""

    kind = ""
    reads = True
    receive_buffer: int | None = None

    def __init__(self, crowd: "Crowd"):
        self.crowd = crowd
        self.socket = socket.socket()
        if self.receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect(crowd.address)
        self.socket.setblocking(False)
        self.outgoing: deque[memoryview] = deque()
        self.head = bytearray()
        self.left = 0  # bytes of the answer that has begun
        self.answers = 0
        self.sent_at = 0.0
        self.answered_at = time.monotonic()
        self.gap = 0.0
        self.slowest = 0.0
        self.closed = False
        self.events = selectors.EVENT_READ if self.reads else 0
        if self.events:
            crowd.selector.register(self.socket, self.events, self)

    def begin(self) -> None: ...
    def answered(self) -> None: ...
    def tick(self) -> None:
        """Once a second."""

    def send(self, *frames: bytes | memoryview) -> None:
        self.sent_at = time.monotonic()
        self.outgoing.extend(memoryview(frame) for frame in frames)
        self.flush()

    def flush(self) -> None:
        while self.outgoing and not self.closed:
            try:
                sent = self.socket.send(self.outgoing[0][: 1 << 20])
            except BlockingIOError:
                break
            except OSError:
                return self.end()
            if sent == len(self.outgoing[0]):
                self.outgoing.popleft()
            else:
                self.outgoing[0] = self.outgoing[0][sent:]
        self.watch(bool(self.outgoing))

    def watch(self, writing: bool) -> None:
        if self.closed:
            return
        events = (selectors.EVENT_READ if self.reads else 0) | (
            selectors.EVENT_WRITE if writing else 0
        )
        if events == self.events:
            return
        selector = self.crowd.selector
        if not events:
            selector.unregister(self.socket)
        elif self.events:
            selector.modify(self.socket, events, self)
        else:
            selector.register(self.socket, events, self)
        self.events = events

    def receive(self, most: int = 1 << 20) -> None:
        try:
            data = self.socket.recv(most)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.end()
        at = 0
        while at < len(data):
            if self.left == 0:
                need = 4 - len(self.head)
                self.head += data[at : at + need]
                at += min(need, len(data) - at)
                if len(self.head) < 4:
                    return
                (self.left,) = struct.unpack(">i", self.head)
                self.head.clear()
            taken = min(self.left, len(data) - at)
            self.left -= taken
            at += taken
            if self.left == 0:
                now = time.monotonic()
                self.answers += 1
                self.gap = max(self.gap, now - self.answered_at)
                self.slowest = max(self.slowest, now - self.sent_at)
                self.answered_at = now
                self.answered()

    def end(self) -> None:
        if self.closed:
            return
        if self.events:
            self.crowd.selector.unregister(self.socket)
        self.closed = True
        self.socket.close()


class Polite(Member):
    """Asks now and then, and reads what it is told."""

    kind = "polite"

    def begin(self) -> None:
        self.send(self.crowd.small)


class Pipeliner(Member):
    """As many small requests at once as a connection may have."""

    kind = "pipeline"

    def begin(self) -> None:
        self.send(self.crowd.small * PIPELINE)

    def answered(self) -> None:
        self.send(self.crowd.small)


class Huge(Member):
    """Requests near the largest that is taken, one at a time and one a second at most."""

    kind = "huge"
    asked = 0

    def tick(self) -> None:
        if self.answers == self.asked:
            self.asked += 1
            self.send(self.crowd.huge)


class Again(Member):
    """Begins again when it was answered."""

    def answered(self) -> None:
        self.begin()


class LargeBatch(Again):
    """One batch near the largest that is taken, one at a time."""

    kind = "large batch"

    def begin(self) -> None:
        self.send(self.crowd.large_batch)


class Reader(Again):
    """Fetches of 50 MiB, one at a time."""

    kind = "reader"

    def begin(self) -> None:
        self.send(self.crowd.fetch_much)


class Unread(Member):
    """Asks for large answers as long as it is let, and reads none."""

    kind = "unread"
    reads = False
    receive_buffer = 4096

    def begin(self) -> None:
        self.send(self.crowd.describe_all * 20, self.crowd.fetch_much, self.crowd.describe_all * 80)


class Drip(Unread):
    """The same, and reads a byte a second."""

    kind = "drip"

    def tick(self) -> None:
        self.receive(1)


class Trickle(Member):
    """Announces 10 MiB and sends a byte a second."""

    kind = "trickle"

    def begin(self) -> None:
        self.rest = memoryview(self.crowd.trickled)[200:]
        self.send(self.crowd.trickled[:200])

    def tick(self) -> None:
        self.send(self.rest[:1])
        self.rest = self.rest[1:]


KINDS = {kind.kind: kind for kind in (Polite, Pipeliner, Huge, LargeBatch, Reader, Unread, Drip, Trickle)}


class Crowd:
    def __init__(self, address: str, topic: str, huge_topic: str, huge_partitions: int):
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        self.selector = selectors.DefaultSelector()
        self.small = request_frame(
            API_PRODUCE,
            PRODUCE_VERSION,
            produce_body(topic, {0: record_batch([bytes(100)])}, acks=1),
        )
        part = record_batch([bytes(HUGE_PART_BYTES)])
        parts = dict.fromkeys(range(huge_partitions), part)
        self.huge = request_frame(
            API_PRODUCE, PRODUCE_VERSION, produce_body(huge_topic, parts, acks=1)
        )
        self.trickled = request_frame(
            API_PRODUCE,
            PRODUCE_VERSION,
            produce_body(huge_topic, dict.fromkeys(range(TRICKLED_BYTES >> 20), part), acks=1),
        )
        self.fetch_much = request_frame(
            API_FETCH,
            FETCH_VERSION,
            fetch_body(FETCH_VERSION, huge_topic, range(huge_partitions), 0, wait_ms=500),
        )
        self.describe_all = request_frame(API_METADATA, METADATA_VERSION, struct.pack(">i", -1))
        self.huge_topic = huge_topic
        self.members: list[Member] = []

    @functools.cached_property
    def large_batch(self) -> bytes:
        batch = record_batch([bytes(HUGE_PART_BYTES)] * (LARGE_BATCH_BYTES // HUGE_PART_BYTES))
        body = produce_body(self.huge_topic, {0: batch}, acks=1)
        return request_frame(API_PRODUCE, PRODUCE_VERSION, body)

    def run(self, wanted: dict[str, int]) -> dict:
        for kind, count in wanted.items():
            for _ in range(count):
                member = KINDS[kind](self)
                self.members.append(member)
                member.begin()
                if len(self.members) % 100 == 0:
                    self._serve(0)
        polite = deque(member for member in self.members if member.kind == "polite")
        while any(member.answers == 0 and not member.closed for member in polite):
            self._serve(0.1)
        now = time.monotonic()
        for member in self.members:
            member.answered_at = now
            member.gap = member.slowest = 0.0
            member.answers = 0
        print("ready", flush=True)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        ticks_at = now + 1
        asked, started = 0, now
        while self._serve(0.005):
            now = time.monotonic()
            due = int((now - started) * len(polite) / POLITE_SECONDS)
            while polite and asked < due:
                polite[0].closed or polite[0].begin()
                polite.rotate(-1)
                asked += 1
            if now >= ticks_at:
                ticks_at += 1
                for member in self.members:
                    member.closed or member.tick()
        return self.figures()

    def _serve(self, seconds: float) -> bool:
        for key, events in self.selector.select(seconds):
            member = key.data
            if member is None:
                return False
            if events & selectors.EVENT_READ:
                member.receive()
            if events & selectors.EVENT_WRITE and not member.closed:
                member.flush()
        return True

    def figures(self) -> dict:
        now = time.monotonic()
        found: dict[str, dict] = {}
        for member in self.members:
            of_kind = found.setdefault(
                member.kind,
                {"connections": 0, "closed": 0, "answers": 0, "fewest": 1 << 60}
                | {"gap": 0.0, "slowest": 0.0},
            )
            of_kind["connections"] += 1
            of_kind["closed"] += member.closed
            of_kind["answers"] += member.answers
            of_kind["fewest"] = min(of_kind["fewest"], member.answers)
            of_kind["gap"] = max(of_kind["gap"], member.gap, now - member.answered_at)
            of_kind["slowest"] = max(of_kind["slowest"], member.slowest)
        return found


def small_latencies(address: str, topic: str, seconds: float, per_second: int) -> list[float]:
    """Of one-record produces and fetches over two connections, by size, in milliseconds. One is
    asked after the other, so that a stall of all shows in the longest of them alone."""
    batch = record_batch([bytes(100)])
    connections = [RawConnection(address) for _ in range(2)]
    offsets = [0, 0]
    taken = []
    try:
        end = time.monotonic() + seconds
        for at in itertools.count():
            _never.wait(1 / per_second)
            asked = time.monotonic()
            if asked > end:
                break
            which = at // 2 % 2
            connection, partition = connections[which], 1 + which
            if at % 2 == 0:
                error, offsets[which] = connection.produce_at(
                    topic, partition, batch, PRODUCE_VERSION
                )
                assert error == 0, error
            else:
                assert connection.fetch_batches(topic, partition, offsets[which])
            taken.append(1000 * (time.monotonic() - asked))
    finally:
        for connection in connections:
            connection.socket.close()
    return sorted(taken)


class CrowdProcess:
    """`with CrowdProcess(...) as crowd:` the crowd is there; afterwards `crowd.figures`."""

    def __init__(
        self, address: str, topic: str, huge_topic: str, huge_partitions: int, **wanted: int
    ):
        self.command = [sys.executable, "-m", "harness.crowd", address, topic, huge_topic]
        self.command += [str(huge_partitions), json.dumps(wanted)]
        self.figures: dict[str, dict] = {}

    def __enter__(self) -> "CrowdProcess":
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, failure, *_) -> None:
        if failure is not None:
            self.process.kill()
        told, _ = self.process.communicate()
        if failure is None:
            self.figures = json.loads(told)


if __name__ == "__main__":
    where, small_topic, large_topic, parts_of_huge, counts = sys.argv[1:]
    crowd = Crowd(where, small_topic, large_topic, int(parts_of_huge))
    print(json.dumps(crowd.run(json.loads(counts))), flush=True)
