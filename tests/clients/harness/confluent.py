"""confluent-kafka for Python: the librdkafka of today."""

import time
from functools import partial

import confluent_kafka as ck
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from harness.client import (
    ABILITIES,
    DEADLINE_SECONDS,
    UNKNOWN_TOPIC_OR_PARTITION,
    Client,
    ClientError,
    Setting,
)
from harness.records import Record


def error_of(error: ck.KafkaError) -> ClientError:
    code = error.code()
    if code == ck.KafkaError._UNKNOWN_PARTITION:  # its own number for what metadata told it
        code = UNKNOWN_TOPIC_OR_PARTITION
    return ClientError(code, error.str())


def create_topic(
    address: str, topic: str, partitions: int, config: dict[str, str] | None = None
) -> None:
    """Also for tests of clients that cannot do it themselves."""
    admin = AdminClient({"bootstrap.servers": address})
    _wait(admin.create_topics([NewTopic(topic, partitions, 1, config=config or {})]))


def _wait(futures: dict):
    """The result of the one thing that was asked for."""
    (future,) = futures.values()
    try:
        return future.result(timeout=DEADLINE_SECONDS)
    except ck.KafkaException as failure:
        raise error_of(failure.args[0]) from None


class Confluent(Client):
    name = "confluent"
    abilities = frozenset(ABILITIES) - {"timeless"}

    def __init__(self, address: str):
        super().__init__(address)
        self.admin = AdminClient({"bootstrap.servers": address})
        self.follower: ck.Consumer | None = None

    def close(self) -> None:
        if self.follower is not None:
            self.follower.close()

    def create_topic(self, topic, partitions, config=None) -> None:
        create_topic(self.address, topic, partitions, config)
        self.wait_until_ready(topic, partitions)

    def partition_count(self, topic: str) -> int:
        consumer = self._consumer()
        try:
            found = consumer.list_topics(topic, timeout=DEADLINE_SECONDS).topics[topic]
        finally:
            consumer.close()
        if found.error is not None:
            raise error_of(found.error)
        return len(found.partitions)

    def produce(
        self,
        topic,
        records,
        *,
        codec="none",
        acks="all",
        largest=1_000_000,
        idempotent=None,
        in_flight=None,
        linger_ms=20,
    ) -> None:
        chosen = {"enable.idempotence": idempotent, "max.in.flight": in_flight}
        producer = ck.Producer(
            {
                "bootstrap.servers": self.address,
                "compression.type": codec,
                "acks": acks,
                "linger.ms": linger_ms,
                "message.max.bytes": largest,
                "message.timeout.ms": DEADLINE_SECONDS * 1000,
                **{name: value for name, value in chosen.items() if value is not None},
            }
        )
        errors: list[ck.KafkaError] = []

        def delivered(error, _message):
            if error is not None:
                errors.append(error)

        for record in records:
            optional = {}
            if record.partition is not None:
                optional["partition"] = record.partition
            if record.timestamp is not None:
                optional["timestamp"] = record.timestamp
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                on_delivery=delivered,
                **optional,
            )
            producer.poll(0)
        left = producer.flush(DEADLINE_SECONDS)
        if errors:
            raise error_of(errors[0])
        assert left == 0, f"{left} of {len(records)} records not acknowledged in time"

    def read(self, topic, partition, start=None) -> list[Record]:
        consumer = self._consumer()
        try:
            first = ck.OFFSET_BEGINNING if start is None else start
            consumer.assign([ck.TopicPartition(topic, partition, first)])
            records = []
            while (record := self._next(consumer)) is not None:
                records.append(record)
            return records
        finally:
            consumer.close()

    def seek(self, topic, partition, offsets) -> list[Record]:
        consumer = self._consumer()
        try:
            consumer.assign([ck.TopicPartition(topic, partition, ck.OFFSET_BEGINNING)])
            self._next(consumer)  # the partition must be in fetching state before seek()
            found = []
            for offset in offsets:
                consumer.seek(ck.TopicPartition(topic, partition, offset))
                found.append(self._next(consumer))
            return found
        finally:
            consumer.close()

    def offset_at_time(self, topic, partition, timestamp) -> int | None:
        consumer = self._consumer()
        try:
            asked = [ck.TopicPartition(topic, partition, timestamp)]
            offset = consumer.offsets_for_times(asked, timeout=DEADLINE_SECONDS)[0].offset
        finally:
            consumer.close()
        return None if offset == ck.OFFSET_END else offset

    def bounds(self, topic, partition) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            return self._bounds(consumer, topic, partition)
        finally:
            consumer.close()

    @staticmethod
    def _bounds(consumer: ck.Consumer, topic, partition) -> tuple[int, int]:
        try:
            return consumer.get_watermark_offsets(
                ck.TopicPartition(topic, partition), timeout=DEADLINE_SECONDS
            )
        except ck.KafkaException as failure:
            raise error_of(failure.args[0]) from None

    def wait_until_ready(self, topic, partitions) -> None:
        consumer = self._consumer()  # one for all: to make it takes most of the time
        try:
            self._wait_until_answered(partial(self._bounds, consumer), topic, partitions)
        finally:
            consumer.close()

    def delete_topic(self, topic) -> None:
        _wait(self.admin.delete_topics([topic]))

    def list_topics(self) -> list[str]:
        return list(self.admin.list_topics(timeout=DEADLINE_SECONDS).topics)

    def grow(self, topic, partitions) -> None:
        _wait(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def trim(self, topic, partition, offset) -> int:
        asked = ck.TopicPartition(topic, partition, ck.OFFSET_END if offset == -1 else offset)
        return _wait(self.admin.delete_records([asked])).low_watermark

    def describe(self, topic) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResource.Type.TOPIC, topic))

    def describe_broker(self, broker) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResource.Type.BROKER, str(broker)))

    def _settings(self, resource: ConfigResource) -> dict[str, Setting]:
        found = _wait(self.admin.describe_configs([resource]))
        return {
            name: Setting(
                entry.value,
                entry.source,
                entry.is_read_only,
                tuple((one.name, one.value, one.source) for one in entry.synonyms.values()),
            )
            for name, entry in found.items()
        }

    def alter(self, topic, config) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config=config)
        _wait(self.admin.alter_configs([resource]))

    def adjust(self, topic, operation, name, value="") -> None:
        kind = AlterConfigOpType[operation.upper()]
        entry = ConfigEntry(name, value, incremental_operation=kind)
        resource = ConfigResource(
            ConfigResource.Type.TOPIC, topic, incremental_configs=[entry]
        )
        _wait(self.admin.incremental_alter_configs([resource]))

    def follow(self, topic, partitions) -> None:
        self.follower = self.follower or self._consumer(ends=False)
        before = {(one.topic, one.partition) for one in self.follower.assignment()}
        wanted = {(topic, partition) for partition in partitions}
        self.follower.incremental_unassign(
            [ck.TopicPartition(*place) for place in before - wanted]
        )
        self.follower.incremental_assign(
            [ck.TopicPartition(*place, ck.OFFSET_BEGINNING) for place in sorted(wanted - before)]
        )

    def take(self, count) -> list[Record]:
        records: list[Record] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(records) < count:
            found = self.follower.consume(count - len(records), timeout=1)
            for message in found:
                if message.error() is not None:
                    raise error_of(message.error())
            records += map(_record, found)
            assert time.monotonic() < deadline, f"only {len(records)} records came"
        return records

    def _consumer(self, *, ends: bool = True) -> ck.Consumer:
        return ck.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "enable.partition.eof": ends,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            }
        )

    @staticmethod
    def _next(consumer: ck.Consumer) -> Record | None:
        """None at the end of the partition."""
        message = consumer.poll(DEADLINE_SECONDS)
        assert message is not None, "no message in time"
        if message.error() is None:
            return _record(message)
        if message.error().code() == ck.KafkaError._PARTITION_EOF:
            return None
        raise error_of(message.error())


def _record(message: ck.Message) -> Record:
    return Record(
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
        message.partition(),
        message.offset(),
    )
