"""Producers that go on sending while a broker goes, with nothing set but where the brokers are: when was what acknowledged?"""

import subprocess
import threading
import time
from abc import ABC, abstractmethod

import confluent_kafka as ck

from harness import programs
from parts.waiting import until

PAUSE_SECONDS = 0.002
WAIT_SECONDS_MAX = 120


class Producer(ABC):
    """A message each two milliseconds into a topic of one partition. Use as a context manager."""

    def __init__(self, addresses: str, topic: str):
        self.addresses = addresses
        self.topic = topic
        self.failures: list[str] = []
        self._sent: list[float] = []
        self._acknowledged: list[tuple[int, float]] = []
        self._ending = threading.Event()
        self._sender = threading.Thread(target=self._run)

    def __enter__(self) -> "Producer":
        self._begin()
        self._sender.start()
        self.wait_for_acknowledgement(time.monotonic())
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self._sender.join()
        self._end()

    def wait_for_acknowledgement(self, moment: float) -> float:
        """When the first of the messages was acknowledged that were sent after that moment."""

        def acknowledged() -> float:
            return next((at for number, at in self._known() if self._sent[number] > moment), 0.0)

        at = until(acknowledged, WAIT_SECONDS_MAX, f"acknowledged; {self.failures[:3]}")
        if self.failures:
            raise SystemExit(f"{type(self).__name__}: {self.failures[0]}")
        return at

    def longest_gap(self, since: float) -> float:
        """The longest time without an acknowledgement, in seconds."""
        times = [at for _, at in self._known() if at > since]
        return max(b - a for a, b in zip([since, *times], times))

    def _known(self) -> list[tuple[int, float]]:
        return list(self._acknowledged)

    def _note(self, number: int) -> None:
        self._acknowledged.append((number, time.monotonic()))

    def _run(self) -> None:
        while not self._ending.is_set():
            number = len(self._sent)
            self._sent.append(time.monotonic())
            if not self._send(number):
                self._sent.pop()
            self._ending.wait(PAUSE_SECONDS)

    def _begin(self) -> None: ...

    @abstractmethod
    def _send(self, number: int) -> bool:
        """False where the client takes no more for the moment."""

    @abstractmethod
    def _end(self) -> None: ...


class Librdkafka(Producer):
    title = "librdkafka"

    def _begin(self) -> None:
        self._client = ck.Producer({"bootstrap.servers": self.addresses, "log_level": 0})

    def _send(self, number: int) -> bool:
        def note(error, _message) -> None:
            if error is not None:
                self.failures.append(error.str())
            else:
                self._note(number)

        try:
            self._client.produce(self.topic, b"%d" % number, on_delivery=note)
        except BufferError:
            return False
        finally:
            self._client.poll(0)
        return True

    def _end(self) -> None:
        self._client.flush(WAIT_SECONDS_MAX)


class Java(Producer):
    title = "Java"

    def _begin(self) -> None:
        words = [*programs.java("StreamClient", "client"), self.addresses, self.topic, 1]
        self._process = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _send(self, number: int) -> bool:
        self._process.stdin.write(f"{number} key\n")
        self._process.stdin.flush()
        return True

    def _listen(self) -> None:
        for line in self._process.stdout:
            what, number, *rest = line.split(maxsplit=2)
            if what == "acknowledged":
                self._note(int(number))
            elif what == "failed":
                self.failures.append(" ".join(rest).strip())

    def _end(self) -> None:
        self._process.stdin.close()
        self._process.wait(WAIT_SECONDS_MAX)
        self._listener.join()
