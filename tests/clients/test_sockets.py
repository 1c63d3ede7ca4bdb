"""What the broker asks of the system for its connections, and what it gives them of that."""

import ctypes
import os
import selectors
import socket
import time
from contextlib import ExitStack

import pytest

from harness.broker import Millrace
from harness.confluent import Confluent
from harness.records import Record
from harness.wire import (
    API_PRODUCE,
    DEADLINE_SECONDS,
    RawConnection,
    produce_body,
    request_frame,
)

pytestmark = pytest.mark.millrace

PIDFD_GETFD = 438
PRODUCE = 7
IDLE_SECONDS = 1.0
LATE_SECONDS = 10
"""On a busy machine."""
FILES_MAX = 200
HELD_BACK_SECONDS = 10
SMALL_MEMORY = 32 << 20
HUGE = 48 << 20
CROWD = 8


def send_buffers(broker: Millrace) -> set[int]:
    """SO_SNDBUF of every connection to the broker's port; the system doubles what it is asked for."""
    found = set()
    pid = broker.process.pid
    of_process = os.pidfd_open(pid)
    for name in os.listdir(f"/proc/{pid}/fd"):
        ours = ctypes.CDLL(None).syscall(PIDFD_GETFD, of_process, int(name), 0)
        if ours < 0 or not os.readlink(f"/proc/self/fd/{ours}").startswith("socket:"):
            continue
        with socket.socket(fileno=ours) as connection:
            if connection.family != socket.AF_INET or connection.getsockname()[1] != broker.port:
                continue
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                continue
            found.add(connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
    os.close(of_process)
    return found


@pytest.mark.parametrize("asked", [50_000, 150_000])
def test_connections_have_the_send_buffer_that_is_asked_for(tmp_path, asked):
    broker = Millrace(tmp_path / "broker", {"socket.send.buffer.bytes": asked})
    try:
        broker.start()
        with RawConnection(broker.address) as connection:
            connection.ask_api_versions()
            assert send_buffers(broker) == {2 * asked}
    finally:
        broker.close()


def test_a_connection_is_closed_once_nothing_has_moved_for_so_long(tmp_path):
    """As Kafka counts it: from the last byte in either direction. A request that waits is no idleness."""
    limits = {'transport.kafka."connections.max.idle.ms"': int(IDLE_SECONDS * 1000)}
    broker = Millrace(tmp_path / "broker", settings=limits)
    try:
        broker.start()
        Confluent(broker.address).create_topic("empty", 1)
        with (
            RawConnection(broker.address) as silent,
            RawConnection(broker.address) as talking,
            RawConnection(broker.address) as waiting,
        ):
            silent.ask_api_versions()
            began = time.monotonic()
            silent.socket.settimeout(0.05)
            while not silent.closed_by_broker():
                talking.ask_api_versions()
                waiting.ask_api_versions()
                assert time.monotonic() - began < LATE_SECONDS
            assert time.monotonic() - began >= IDLE_SECONDS - 0.1
            waiting.send_fetch("empty", 0, 0, wait_ms=int(2000 * IDLE_SECONDS))
            waiting.receive_frame()  # its answer, at the end of its wait
            assert waiting.closed_by_broker(), "it is idle from then on"
        broker.end()
    finally:
        broker.close()


class FewFiles(Millrace):
    """May open few files, also where it asks for more."""

    def command(self):
        return ["sh", "-c", f'ulimit -n {FILES_MAX}; exec "$@"', "sh", *super().command()]


def test_a_crowd_leaves_files_to_logs(tmp_path):
    """Connections are refused before logs cannot be written, and told of once."""
    broker = FewFiles(tmp_path / "broker")
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic("orders", 8, {"segment.bytes": "2000"})
        client.produce("orders", [Record(b"key", os.urandom(1000), partition=0)])
        with ExitStack() as stack:
            kept = stack.enter_context(RawConnection(broker.address))
            batch = kept.fetch_batches("orders", 0)
            for _ in range(2 * FILES_MAX):
                stack.enter_context(socket.create_connection(("127.0.0.1", broker.port)))
            broker.wait_for_log_line("connections are refused")
            open_files = len(os.listdir(f"/proc/{broker.process.pid}/fd"))
            assert FILES_MAX // 2 < open_files < FILES_MAX, open_files
            for at in range(160):
                assert kept.produce("orders", at % 8, batch, PRODUCE) == 0, broker.log_tail()
            assert len(list((broker.folder / "data" / "orders-0").glob("*.log"))) > 5
        lines = broker.log_text().splitlines()
        assert len([line for line in lines if "connections are refused" in line]) == 1
        assert "Too many open files" not in broker.log_text()
        deadline = time.monotonic() + HELD_BACK_SECONDS
        while len(client.read("orders", 1)) != 20:
            assert time.monotonic() < deadline
        broker.end()
    finally:
        broker.close()


def resident_bytes(broker, field: str) -> int:
    with open(f"/proc/{broker.process.pid}/status") as status:
        (line,) = [line for line in status if line.startswith(field + ":")]
    return int(line.split()[1]) * 1024


def send_beside_each_other(connections: list[RawConnection], frame: bytes) -> None:
    """A little of each in turn, of those whose bytes are taken."""
    with selectors.DefaultSelector() as selector:
        for one in connections:
            one.socket.setblocking(False)
            selector.register(one.socket, selectors.EVENT_WRITE, [memoryview(frame)])
        while selector.get_map():
            ready = selector.select(DEADLINE_SECONDS)
            assert ready, "nothing is taken any more"
            for key, _ in ready:
                sent = key.fileobj.send(key.data[0][: 1 << 18])
                key.data[0] = key.data[0][sent:]
                if not key.data[0]:
                    selector.unregister(key.fileobj)
                    key.fileobj.settimeout(DEADLINE_SECONDS)


def test_requests_larger_than_a_shards_memory_are_let_in_one_at_a_time(tmp_path):
    """Each shard may go beyond its part of broker.memory by one such request, however many come."""
    broker = Millrace(tmp_path / "broker", settings={"broker.memory": SMALL_MEMORY})
    try:
        broker.start()
        Confluent(broker.address).create_topic("orders", 1)
        before = resident_bytes(broker, "VmRSS")
        with open(f"/proc/{broker.process.pid}/clear_refs", "w") as refs:
            refs.write("5")  # the peak counts from here
        with ExitStack() as stack:
            crowd = [stack.enter_context(RawConnection(broker.address)) for _ in range(CROWD)]
            send_beside_each_other(
                crowd, request_frame(API_PRODUCE, PRODUCE, produce_body("orders", {0: bytes(HUGE)}, -1))
            )
            errors = {one.receive_produced("orders", 0)[0] for one in crowd}
        assert 0 not in errors, "nothing of it can be stored"
        peak = resident_bytes(broker, "VmHWM") - before
        assert HUGE // 2 < peak < broker.shards * HUGE + 2 * SMALL_MEMORY, f"{peak >> 20} MiB"
        broker.end()
    finally:
        broker.close()
