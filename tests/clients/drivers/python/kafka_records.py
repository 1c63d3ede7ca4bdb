"""What kafka-python has alike in 1.4 and today: producing and consuming."""

import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from lines import Lines, Seen, pairs, record_line

DEADLINE_SECONDS = 50


class Records(Lines):
    def __init__(self, address: str, api_version: tuple[int, ...] | None = None):
        self.common = {"bootstrap_servers": address, "api_version": api_version}
        self.consumer = self._consumer()
        self.follower = None
        self.member = None
        self.seen = Seen()

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            **self.common,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=4 << 20,  # before Fetch 3, what is larger never comes
        )

    def produce(self, topic, records, options) -> None:
        producer = KafkaProducer(**self.common, **producer_options(options))
        try:
            sent = [
                producer.send(topic, **{k: v for k, v in record.items() if v not in (None, [])})
                for record in records
            ]
            producer.flush(timeout=DEADLINE_SECONDS)
            for one in sent:
                one.get(timeout=DEADLINE_SECONDS)
        finally:
            producer.close(timeout=5)

    def read(self, topic, partition, start):
        place = TopicPartition(topic, int(partition))
        self.consumer.assign([place])
        end = self.consumer.end_offsets([place])[place]
        if int(start) < 0:
            self.consumer.seek_to_beginning(place)
        else:
            self.consumer.seek(place, int(start))
        lines = []
        while self.consumer.position(place) < end:
            for records in self.consumer.poll(timeout_ms=1000).values():
                lines += map(record_line, records)
        return lines

    def seek(self, topic, partition, *offsets):
        place = TopicPartition(topic, int(partition))
        self.consumer.assign([place])
        lines = []
        for offset in map(int, offsets):
            self.consumer.seek(place, offset)
            while not (found := self.consumer.poll(timeout_ms=1000, max_records=1)):
                pass
            lines.append(record_line(found[place][0]))
        return lines

    def time(self, topic, partition, timestamp):
        place = TopicPartition(topic, int(partition))
        found = self.consumer.offsets_for_times({place: int(timestamp)})[place]
        return [-1 if found is None else found.offset]

    def bounds(self, topic, partition):
        place = TopicPartition(topic, int(partition))
        first = self.consumer.beginning_offsets([place])[place]
        return [f"{first}\t{self.consumer.end_offsets([place])[place]}"]

    def follow(self, topic, *partitions) -> None:
        self.follower = self.follower or self._consumer()
        before = self.follower.assignment()
        wanted = [TopicPartition(topic, int(partition)) for partition in partitions]
        self.follower.assign(wanted)
        for place in wanted:
            if place not in before:
                self.follower.seek_to_beginning(place)

    def take(self, count):
        lines = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(lines) < int(count):
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {len(lines)} records came")
            for records in self.follower.poll(timeout_ms=1000).values():
                lines += map(record_line, records)
        return lines


    # --- A member of a group ---

    def join(self, group, topic, *options) -> None:
        chosen = pairs(options)
        more = {}
        if "session" in chosen:
            session = int(chosen["session"])
            more |= {"session_timeout_ms": session, "heartbeat_interval_ms": session // 6}
        if "instance" in chosen:
            more["group_instance_id"] = chosen["instance"]
        if chosen.get("assignor") == "cooperative":
            more["partition_assignment_strategy"] = [_cooperative()]
        self.member = KafkaConsumer(
            **self.common,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            **more,
        )
        self.member.subscribe([topic], listener=_Listener(self.seen))

    def work(self) -> bool:
        if self.member is not None:
            for records in self.member.poll(timeout_ms=300).values():
                for record in records:
                    self.seen.read(record)
        return self.member is not None

    def look(self):
        return self.seen.take(self.member.assignment())

    def commit(self) -> None:
        self.member.commit()

    def leave(self) -> None:
        self.member.close()
        self.member = None


class _Listener(ConsumerRebalanceListener):
    def __init__(self, seen: Seen):
        self.seen = seen

    def on_partitions_assigned(self, assigned) -> None:
        self.seen.got(assigned)

    def on_partitions_revoked(self, revoked) -> None:
        self.seen.gave(revoked)


def _cooperative():
    """Which only newer versions have."""
    from kafka.coordinator.assignors import cooperative_sticky

    return cooperative_sticky.CooperativeStickyAssignor


def producer_options(options: dict[str, str]) -> dict:
    acks, codec = options["acks"], options["codec"]
    chosen = {
        "acks": acks if acks == "all" else int(acks),
        "compression_type": None if codec == "none" else codec,
        "linger_ms": int(options["linger"]),
        "max_request_size": int(options["largest"]),
        "retries": 100,
    }
    if "idempotent" in options:
        chosen["enable_idempotence"] = options["idempotent"] == "true"
    elif acks != "all" and "enable_idempotence" in KafkaProducer.DEFAULT_CONFIG:
        chosen["enable_idempotence"] = False
    if "in-flight" in options:
        chosen["max_in_flight_requests_per_connection"] = int(options["in-flight"])
    return chosen
