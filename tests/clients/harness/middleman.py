"""Stands between a client and its broker and spoils answers: of an API the next few say an error that the broker did not
mean, as of one that has just started or leads no more."""

import socket
import struct
import threading
from collections import Counter

FRAME_HEAD = struct.Struct(">i")
ERROR = struct.Struct(">h")


def error_at(place: int, answer: bytes, names: list[bytes]) -> int | None:
    """Where the error code stands: at that place, or, `place` being negative, so far behind the number of the only
    partition of the only topic, -1 being right behind it. The topic is one of `names`; None: it is of another one."""
    if place >= 0:
        return place
    for name in names:
        at = answer.find(name)
        if at >= 0:
            # One element of a compact array, whose length is a byte, and the partition's number.
            return at + len(name) + 1 + 4 - place - 1
    return None


class Middleman:
    def __init__(self, broker: str):
        host, port = broker.rsplit(":", 1)
        self._broker = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.spoiled = Counter()
        """How many answers of an API said something else."""
        self._orders: dict[int, tuple[int, int, int, list[bytes]]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def spoil(self, api: int, times: int, code: int, place: int, names: list[bytes] = ()) -> None:
        """From now on that API alone. `place` as error_at() has it. The requests do reach the broker."""
        with self._lock:
            self.spoiled.clear()
            self._orders = {api: (times, code, place, list(names))}

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            broker = socket.create_connection(self._broker)
            asked: dict[int, int] = {}
            for pump in (self._ask, self._answer):
                threading.Thread(target=pump, args=(client, broker, asked), daemon=True).start()

    def _ask(self, client: socket.socket, broker: socket.socket, asked: dict[int, int]) -> None:
        while (frame := _frame(client)) is not None:
            api, _version, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = api
            broker.sendall(FRAME_HEAD.pack(len(frame)) + frame)
        broker.close()

    def _answer(self, client: socket.socket, broker: socket.socket, asked: dict[int, int]) -> None:
        while (frame := _frame(broker)) is not None:
            (correlation,) = struct.unpack_from(">i", frame)
            frame = self._spoiled(asked.pop(correlation), frame)
            try:
                client.sendall(FRAME_HEAD.pack(len(frame)) + frame)
            except OSError:
                return
        client.close()

    def _spoiled(self, api: int, frame: bytes) -> bytes:
        with self._lock:
            if api not in self._orders or self.spoiled[api] == self._orders[api][0]:
                return frame
            _times, code, place, names = self._orders[api]
            # An answer of a flexible version: its number and no tagged fields; then the throttle time.
            head = 4 + 1
            at = error_at(place, frame[head:], names)
            if at is None:
                return frame
            at += head
            self.spoiled[api] += 1
            return frame[:at] + ERROR.pack(code) + frame[at + ERROR.size :]


def _frame(connection: socket.socket) -> bytes | None:
    try:
        head = _exactly(connection, FRAME_HEAD.size)
        return head and _exactly(connection, FRAME_HEAD.unpack(head)[0])
    except OSError:
        return None


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            return None
        data += part
    return data
