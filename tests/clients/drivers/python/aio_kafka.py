"""aiokafka: aio_kafka.py ADDRESS"""

import asyncio
import sys

from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource
from lines import Failure, Lines, Seen, pairs, record_line, setting_line

DEADLINE_SECONDS = 50


class Client(Lines):
    """Each command runs the event loop until it is carried out."""

    def __init__(self, address: str):
        self.address = address
        self.loop = asyncio.new_event_loop()
        self.follower = None
        self.member = None
        self.seen = Seen()
        self.consumer = self._run(self._started_consumer())
        self.admin = self._run(self._started_admin())

    def _run(self, coroutine):
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, DEADLINE_SECONDS))

    async def _started_consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.address,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        return consumer

    async def _started_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.address)
        await admin.start()
        return admin

    # --- Topics ---

    def create(self, topic, partitions, *config) -> None:
        wanted = NewTopic(topic, int(partitions), 1, topic_configs=pairs(config))
        answer = self._run(self.admin.create_topics([wanted]))
        _check((code, text) for _, code, text in answer.topic_errors)

    def delete(self, topic) -> None:
        answer = self._run(self.admin.delete_topics([topic]))
        _check((code, name) for name, code in answer.topic_error_codes)

    def list(self):
        return self._run(self.admin.list_topics())

    def partitions(self, topic):
        (found,) = self._run(self.admin.describe_topics([topic]))
        _check([(found["error_code"], topic)])
        return [len(found["partitions"])]

    def grow(self, topic, partitions) -> None:
        answer = self._run(
            self.admin.create_partitions({topic: NewPartitions(int(partitions))})
        )
        _check((code, text) for _, code, text in answer.topic_errors)

    def trim(self, topic, partition, offset):
        place = TopicPartition(topic, int(partition))
        left = self._run(self.admin.delete_records({place: RecordsToDelete(int(offset))}))
        return [left[place]]

    # --- Settings ---

    def describe(self, kind, name):
        (answer,) = self._run(self.admin.describe_configs([ConfigResource(kind, name)]))
        for code, text, _kind, _name, settings in answer.resources:
            _check([(code, text)])
            for setting, value, read_only, source, *_ in settings:
                yield setting_line(setting, value, source, read_only)

    def alter(self, topic, *config) -> None:
        resource = ConfigResource("topic", topic, pairs(config))
        for answer in self._run(self.admin.alter_configs([resource])):
            _check((code, text) for code, text, *_ in answer.resources)

    # --- Records ---

    def produce(self, topic, records, options) -> None:
        self._run(self._produce(topic, records, options))

    async def _produce(self, topic, records, options) -> None:
        acks, codec = options["acks"], options["codec"]
        producer = AIOKafkaProducer(
            bootstrap_servers=self.address,
            acks=acks if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
            linger_ms=int(options["linger"]),
            max_request_size=int(options["largest"]),
            enable_idempotence=options.get("idempotent") == "true",
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, **record) for record in records]
            await producer.flush()
            for one in sent:
                await one
        finally:
            await producer.stop()

    def read(self, topic, partition, start):
        return self._run(self._read(TopicPartition(topic, int(partition)), int(start)))

    async def _read(self, place, start):
        self.consumer.assign([place])
        end = (await self.consumer.end_offsets([place]))[place]
        if start < 0:
            start = (await self.consumer.beginning_offsets([place]))[place]
        self.consumer.seek(place, start)
        lines = []
        while await self.consumer.position(place) < end:
            for records in (await self.consumer.getmany(timeout_ms=1000)).values():
                lines += map(record_line, records)
        return lines

    def seek(self, topic, partition, *offsets):
        return self._run(self._seek(TopicPartition(topic, int(partition)), map(int, offsets)))

    async def _seek(self, place, offsets):
        self.consumer.assign([place])
        lines = []
        for offset in offsets:
            self.consumer.seek(place, offset)
            lines.append(record_line(await self.consumer.getone(place)))
        return lines

    def time(self, topic, partition, timestamp):
        place = TopicPartition(topic, int(partition))
        found = self._run(self.consumer.offsets_for_times({place: int(timestamp)}))[place]
        return [-1 if found is None else found.offset]

    def bounds(self, topic, partition):
        place = TopicPartition(topic, int(partition))
        first = self._run(self.consumer.beginning_offsets([place]))[place]
        return [f"{first}\t{self._run(self.consumer.end_offsets([place]))[place]}"]

    def follow(self, topic, *partitions) -> None:
        self._run(self._follow([TopicPartition(topic, int(one)) for one in partitions]))

    async def _follow(self, wanted) -> None:
        """A new assignment forgets the positions, so they are carried over."""
        self.follower = self.follower or await self._started_consumer()
        kept = self.follower.assignment() & set(wanted)
        positions = {place: await self.follower.position(place) for place in kept}
        self.follower.assign(wanted)
        positions |= await self.follower.beginning_offsets([one for one in wanted if one not in kept])
        for place, offset in positions.items():
            self.follower.seek(place, offset)

    def take(self, count):
        return self._run(self._take(int(count)))

    async def _take(self, count):
        lines = []
        while len(lines) < count:
            for records in (await self.follower.getmany(timeout_ms=1000)).values():
                lines += map(record_line, records)
        return lines


    # --- A member of a group ---

    def join(self, group, topic, *options) -> None:
        self._run(self._join(group, topic, pairs(options)))

    async def _join(self, group, topic, options) -> None:
        session = int(options.get("session", 10_000))
        self.member = AIOKafkaConsumer(
            bootstrap_servers=self.address,
            group_id=group,
            group_instance_id=options.get("instance"),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            session_timeout_ms=session,
            heartbeat_interval_ms=session // 6,
        )
        self.member.subscribe([topic], listener=_Listener(self.seen))
        await self.member.start()

    def work(self) -> bool:
        if self.member is not None:
            for records in self._run(self.member.getmany(timeout_ms=50)).values():
                for record in records:
                    self.seen.read(record)
        return self.member is not None

    def look(self):
        return self.seen.take(self.member.assignment())

    def commit(self) -> None:
        self._run(self.member.commit())

    def leave(self) -> None:
        member, self.member = self.member, None
        self._run(member.stop())


class _Listener(ConsumerRebalanceListener):
    def __init__(self, seen: Seen):
        self.seen = seen

    def on_partitions_assigned(self, assigned) -> None:
        self.seen.got(assigned)

    def on_partitions_revoked(self, revoked) -> None:
        self.seen.gave(revoked)


def _check(outcomes) -> None:
    for code, text in outcomes:
        if code != 0:
            raise Failure(code, str(text))


if __name__ == "__main__":
    Client(sys.argv[-1]).serve()
