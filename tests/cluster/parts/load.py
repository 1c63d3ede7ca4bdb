"""A producer that never stops: idempotent, waiting for all replicas, with the defaults of librdkafka
for everything that decides whether a message is lost; and readers that follow it."""

import threading
import time
from contextlib import contextmanager

import confluent_kafka as ck

from parts.history import Acknowledged, History, Read, Sent
from parts.waiting import until

KEYS = 20
BURST = 10
PAUSE_SECONDS = 0.01
MESSAGE_SECONDS_MAX = 120
IN_FLIGHT_MAX = 2000
WAIT_SECONDS_MAX = 90
READ_SECONDS_MAX = 30
STOP_SECONDS_MAX = 15
CLOSED_SECONDS_MAX = 10
NOBODY_LEADS = {
    ck.KafkaError.NOT_LEADER_FOR_PARTITION,
    ck.KafkaError.LEADER_NOT_AVAILABLE,
    ck.KafkaError._ALL_BROKERS_DOWN,
    ck.KafkaError._TIMED_OUT,
    ck.KafkaError._TRANSPORT,
}
GIVES_UP = (ck.KafkaException, SystemError)
"""An idempotent producer that finds a gap; raised through a callback, it is a SystemError."""


class Load:
    """Numbered messages of a few keys, about a thousand in a second, from a thread of its own.
    Use as a context manager; `finish()` ends it with everything answered."""

    def __init__(
        self,
        addresses: str,
        topic: str,
        history: History,
        *,
        acks: str = "all",
        first: int = 0,
        batch: int = 0,
        in_flight: int = 0,
    ):
        self.topic = topic
        self.history = history
        self.first = first
        """The number of the first message. `batch`: so many in one at most; `in_flight`: so many
        requests at a time; 0 is the client's choice."""
        self.errors: list[str] = []
        """Of messages that the client gave up."""
        self.acknowledged_at: list[float] = []
        self._news = threading.Condition()
        self._ending = threading.Event()
        self._sending = threading.Lock()
        self._producer = ck.Producer(
            {
                "bootstrap.servers": addresses,
                "acks": acks,
                "enable.idempotence": acks == "all",
                "linger.ms": 2,
                "partitioner": "murmur2",
                "queue.buffering.max.messages": IN_FLIGHT_MAX,
                "message.timeout.ms": MESSAGE_SECONDS_MAX * 1000,
                "log_level": 0,
                **({"batch.num.messages": batch} if batch else {}),
                **({"max.in.flight": in_flight} if in_flight else {}),
            }
        )
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self._thread.join()

    def wait_for_acknowledged(self, count: int, seconds: float = WAIT_SECONDS_MAX) -> None:
        """Until `count` messages more than now are acknowledged."""
        with self._news:
            wanted = len(self.history.acknowledged) + count
            enough = self._news.wait_for(
                lambda: len(self.history.acknowledged) >= wanted or self.errors, seconds
            )
            assert enough and not self.errors, (
                f"{len(self.history.acknowledged)} of {wanted} acknowledged; {self.errors[:3]}"
            )

    @contextmanager
    def held(self):
        """Nothing is sent within it, and all that was is answered. The client stays connected."""
        with self._sending:
            self._flush()
            yield

    def finish(self) -> None:
        self._ending.set()
        self._thread.join()
        self._flush()

    def _flush(self) -> None:
        left = self._producer.flush(MESSAGE_SECONDS_MAX)
        assert left == 0 and not self.errors, f"{left} not answered; {self.errors[:3]}"

    def stop(self) -> list[str]:
        """As finish(), whatever has become of it; what went wrong."""
        self._ending.set()
        self._thread.join()
        try:
            left = self._producer.flush(STOP_SECONDS_MAX)
        except GIVES_UP as fatal:
            return [*self.errors, str(fatal)]
        return self.errors + ([f"{left} messages were not answered"] if left else [])

    def last_acknowledged(self) -> float:
        """When, as time.monotonic() counts."""
        with self._news:
            return self.acknowledged_at[-1]

    def longest_gap(self) -> float:
        """The longest time, in seconds, in which nothing was acknowledged."""
        with self._news:
            times = list(self.acknowledged_at)
        return max((b - a for a, b in zip(times, times[1:])), default=0.0)

    def _run(self) -> None:
        number = self.first
        while not self._ending.is_set():
            with self._sending:
                number = self._send_from(number)
            try:
                self._producer.poll(0)
            except GIVES_UP as fatal:
                self._fail(str(fatal))
                return
            self._ending.wait(PAUSE_SECONDS)

    def _send_from(self, number: int) -> int:
        """A few; returns the number of the next."""
        for _ in range(BURST):
            key = f"key-{number % KEYS}"
            try:
                self._producer.produce(
                    self.topic, b"%d" % number, key, on_delivery=self._note_of(number)
                )
            except BufferError:  # as many wait as we want
                break
            except ck.KafkaException as fatal:
                self._fail(str(fatal))
                self._ending.set()
                break
            self.history.sent.append(Sent(number, key))
            number += 1
        return number

    def _fail(self, text: str) -> None:
        with self._news:
            self.errors.append(text)
            self._news.notify_all()

    def _note_of(self, number: int):
        def note(error, message):
            if error is not None:
                self._fail(f"message {number}: {error.str()}")
                return
            with self._news:
                self.history.acknowledged.append(
                    Acknowledged(number, message.partition(), message.offset())
                )
                self.acknowledged_at.append(time.monotonic())
                self._news.notify_all()

        return note


class Reader:
    """Reads every partition from its start, and goes on from where it is through all that happens."""

    def __init__(self, name: str, addresses: str, topic: str, partitions: int, history: History):
        self.name = name
        self.history = history
        self.errors: list[str] = []
        self._ending = threading.Event()
        self._consumer = consumer_of(addresses)
        self._consumer.assign([ck.TopicPartition(topic, p, 0) for p in range(partitions)])
        self._thread = threading.Thread(target=self._run, name=name)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self._thread.join()
        close(self._consumer)

    def _run(self) -> None:
        while not self._ending.is_set():
            for message in self._consumer.consume(200, timeout=0.1):
                if message.error() is not None:
                    if message.error().code() == ck.KafkaError._AUTO_OFFSET_RESET:
                        self.errors.append(f"{self.name}: {message.error().str()}")
                    continue
                self.history.reads.append(
                    Read(self.name, message.partition(), message.offset(), int(message.value()))
                )


def close(consumer: ck.Consumer) -> None:
    """librdkafka 2.16 locks itself up now and then when it closes while an answer to OffsetForLeaderEpoch sends it for the
    leaders anew: its threads wait for one another's locks. It is left behind then; what it has read is known."""
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(CLOSED_SECONDS_MAX)


def consumer_of(addresses: str) -> ck.Consumer:
    """One that belongs to no group, and says so when an offset is gone instead of looking for another."""
    return ck.Consumer(
        {
            "bootstrap.servers": addresses,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
    )


def watermarks(consumer: ck.Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Where the partition's log begins, and where it ends for readers; asked again while nobody leads
    it, as librdkafka does not by itself."""
    found: list[tuple[int, int]] = []

    def told() -> bool:
        try:
            at = ck.TopicPartition(topic, partition)
            found.append(consumer.get_watermark_offsets(at, timeout=READ_SECONDS_MAX))
        except ck.KafkaException as failure:
            assert failure.args[0].code() in NOBODY_LEADS, failure
        return bool(found)

    until(told, WAIT_SECONDS_MAX, f"the end of {topic}-{partition}")
    return found[0]


def read_log(addresses: str, topic: str, partitions: int) -> dict[int, list[tuple[int, int]]]:
    """All of the topic, as it is now: of each partition (offset, number)."""
    consumer = consumer_of(addresses)
    log: dict[int, list[tuple[int, int]]] = {}
    try:
        for partition in range(partitions):
            at = ck.TopicPartition(topic, partition, 0)
            _, end = watermarks(consumer, topic, partition)
            consumer.assign([at])
            records = log.setdefault(partition, [])
            while end > 0 and (not records or records[-1][0] < end - 1):
                message = consumer.poll(READ_SECONDS_MAX)
                assert message is not None, f"{topic}-{partition}: {records[-1:]}, and then nothing"
                assert message.error() is None, message.error()
                records.append((message.offset(), int(message.value())))
    finally:
        close(consumer)
    return log
