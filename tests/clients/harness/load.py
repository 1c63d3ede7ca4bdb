"""A producer that keeps sending from a thread of its own and writes down what was acknowledged."""

import threading

import confluent_kafka as ck

from harness.client import DEADLINE_SECONDS
from harness.records import Record


class Load:
    """Numbered records, round robin over the partitions, acks=all. The client retries by itself, so
    one load outlives restarts of the broker. Use as a context manager; `finish()` ends it with
    everything answered."""

    IN_FLIGHT_MAX = 5000

    def __init__(self, address: str, topic: str, partitions: int, *, idempotent: bool):
        self.topic = topic
        self.partitions = partitions
        self.sent = 0
        self.acknowledged: list[tuple[int, int, int]] = []
        """(partition, offset, number of the record that the broker said is there). A list, because a
        broker that lost its log gives an offset a second time."""
        self.errors: list[str] = []
        self._more = threading.Condition()
        self._ending = threading.Event()
        self._producer = ck.Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 2,
                "queue.buffering.max.messages": self.IN_FLIGHT_MAX,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "message.timeout.ms": DEADLINE_SECONDS * 1000,
                "log_level": 2,
            }
        )
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self._thread.join()

    def wait_for_acknowledged(self, count: int) -> None:
        """Until the broker acknowledged `count` more records than now."""
        with self._more:
            wanted = len(self.acknowledged) + count
            enough = self._more.wait_for(
                lambda: len(self.acknowledged) >= wanted or self.errors, DEADLINE_SECONDS
            )
            assert enough and not self.errors, (
                f"{len(self.acknowledged)} acknowledged; errors {self.errors[:3]}"
            )

    def finish(self) -> None:
        """No more new records; every one of those sent is acknowledged."""
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(DEADLINE_SECONDS)
        assert left == 0 and not self.errors, f"{left} not answered; errors {self.errors[:3]}"

    def assert_all_stored(self, stored: dict[int, list[Record]], *, once: bool) -> None:
        """Each acknowledged record is where the broker said. With `once`, each is there one time,
        in order."""
        found = {
            (record.partition, record.offset): int(record.value)
            for records in stored.values()
            for record in records
        }
        wrong = [
            f"record {number} at {partition}:{offset}, where {found.get((partition, offset))} is"
            for partition, offset, number in self.acknowledged
            if found.get((partition, offset)) != number
        ]
        assert not wrong, f"{len(wrong)} acknowledged records are lost: {wrong[:5]}"
        if once:
            for partition, records in stored.items():
                numbers = [int(record.value) for record in records]
                expected = list(range(partition, self.sent, self.partitions))
                assert numbers == expected, f"partition {partition}: not each once and in order"

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._producer.produce(
                    self.topic,
                    b"%d" % self.sent,
                    partition=self.sent % self.partitions,
                    on_delivery=self._delivered(self.sent),
                )
                self.sent += 1
                self._producer.poll(0)
            except BufferError:  # as many in flight as we want
                self._producer.poll(0.05)
            except ck.KafkaException as fatal:  # the client gave up for good
                with self._more:
                    self.errors.append(str(fatal))
                    self._more.notify_all()
                return

    def _delivered(self, number: int):
        def note(error, message):
            with self._more:
                if error is None:
                    self.acknowledged.append((message.partition(), message.offset(), number))
                else:
                    self.errors.append(error.str())
                self._more.notify_all()

        return note
