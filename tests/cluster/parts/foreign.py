"""A producer and a reader of a client as a program, through all that happens, with the settings that
it has by itself; its program is one of `tests/clients/drivers`."""

import subprocess
import threading

from harness import programs

from parts.history import Acknowledged, History, Read, Sent
from parts.load import KEYS
from parts.waiting import until

PROGRAMS = {
    "librdkafka": lambda: programs.python("stream.py"),
    "java": lambda: programs.java("StreamClient", "client"),
    "franz-go": lambda: programs.go("stream"),
    "kafkajs": lambda: programs.node("stream.js"),
}
BURST = 5
PAUSE_SECONDS = 0.02
GOES_ON_SECONDS_MAX = 90
END_SECONDS_MAX = 60


class Foreign:
    """Use as a context manager; `finish()` inside it ends it with everything answered and read."""

    def __init__(self, client: str, addresses: str, topic: str, partitions: int, history: History):
        self.client = client
        self.history = history
        self.failures: list[str] = []
        words = [*PROGRAMS[client](), addresses, topic, partitions]
        self._process = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._last_is_sent = threading.Event()
        self._stopping = threading.Event()
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._send, self._listen)]

    def __enter__(self) -> "Foreign":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self._threads[0].join()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._threads[1].join()

    def goes_on(self, count: int = 100) -> None:
        """So many more are acknowledged, and read."""
        for what in (self.history.acknowledged, self.history.reads):
            wanted = len(what) + count
            until(
                lambda: len(what) >= wanted or self.failures,
                GOES_ON_SECONDS_MAX,
                f"{wanted}, {len(what)} so far; {self.failures[:3]}",
            )
        assert not self.failures, self.failures[:3]

    def finish(self) -> None:
        self._stopping.set()
        self._last_is_sent.wait(END_SECONDS_MAX)
        until(
            lambda: len(self.history.acknowledged) + len(self.failures) >= len(self.history.sent),
            END_SECONDS_MAX,
            "all are answered",
        )
        assert not self.failures, self.failures[:3]
        numbers = {one.number for one in self.history.acknowledged}
        until(
            lambda: numbers <= {one.number for one in self.history.reads},
            END_SECONDS_MAX,
            "all are read",
        )

    def _send(self) -> None:
        number = 0
        while not self._ending.is_set():
            stopping = self._stopping.is_set()
            for _ in range(0 if stopping else BURST):
                key = f"key-{number % KEYS}"
                self.history.sent.append(Sent(number, key))
                self._process.stdin.write(f"{number} {key}\n")
                number += 1
            self._process.stdin.flush()
            if stopping:
                self._last_is_sent.set()
            self._ending.wait(PAUSE_SECONDS)
        self._process.stdin.close()

    def _listen(self) -> None:
        for line in self._process.stdout:
            what, number, *rest = line.split(maxsplit=3)
            if what == "failed":
                self.failures.append(line.strip())
                continue
            partition, offset = map(int, rest)
            if what == "acknowledged":
                self.history.acknowledged.append(Acknowledged(int(number), partition, offset))
            else:
                self.history.reads.append(Read(self.client, partition, offset, int(number)))
