"""confluent-kafka for Python: the librdkafka of today."""

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from harness.client import DEADLINE_SECONDS, Client, ClientError
from harness.records import Record


def error_of(error: ck.KafkaError) -> ClientError:
    return ClientError(error.code(), error.str())


def create_topic(
    address: str, topic: str, partitions: int, config: dict[str, str] | None = None
) -> None:
    """Also for tests of clients that cannot do it themselves."""
    admin = AdminClient({"bootstrap.servers": address})
    future = admin.create_topics([NewTopic(topic, partitions, 1, config=config or {})])[topic]
    try:
        future.result(timeout=DEADLINE_SECONDS)
    except ck.KafkaException as failure:
        raise error_of(failure.args[0]) from None


class Confluent(Client):
    name = "confluent"

    def create_topic(self, topic: str, partitions: int) -> None:
        create_topic(self.address, topic, partitions)
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

    def produce(self, topic, records, *, codec="none", acks="all", largest=1_000_000) -> None:
        producer = ck.Producer(
            {
                "bootstrap.servers": self.address,
                "compression.type": codec,
                "acks": acks,
                "linger.ms": 20,
                "message.max.bytes": largest,
                "message.timeout.ms": DEADLINE_SECONDS * 1000,
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
            return consumer.get_watermark_offsets(
                ck.TopicPartition(topic, partition), timeout=DEADLINE_SECONDS
            )
        except ck.KafkaException as failure:
            raise error_of(failure.args[0]) from None
        finally:
            consumer.close()

    def _consumer(self) -> ck.Consumer:
        return ck.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
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
