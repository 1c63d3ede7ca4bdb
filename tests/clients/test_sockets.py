"""What the broker asks of the system for its connections."""

import ctypes
import os
import socket

import pytest

from harness.broker import Millrace
from harness.wire import RawConnection

pytestmark = pytest.mark.millrace

PIDFD_GETFD = 438


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
