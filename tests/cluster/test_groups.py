"""Consumer groups, whose coordinators move with their partitions' leaders."""

import confluent_kafka as ck
import pytest
from harness.confluent import Confluent
from harness.records import Record

from parts.waiting import until

PARTITIONS = 3
MOVED_SECONDS_MAX = 60


class Member:
    def __init__(self, addresses: str, topic: str, protocol: str):
        self.topic = topic
        self.seen: list[bytes] = []
        self.consumer = ck.Consumer(
            {
                "bootstrap.servers": addresses,
                "group.id": "readers",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self.consumer.subscribe([topic])

    def read_up_to(self, count: int) -> None:
        def there() -> bool:
            message = self.consumer.poll(0.2)
            if message is not None and not message.error():
                self.seen.append(message.value())
            return len(self.seen) >= count

        until(there, MOVED_SECONDS_MAX, f"{count} messages, {len(self.seen)} so far")

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def committed(self) -> int:
        partitions = [ck.TopicPartition(self.topic, n) for n in range(PARTITIONS)]
        return sum(max(0, one.offset) for one in self.consumer.committed(partitions, timeout=30))


def coordinator(cluster) -> int:
    admin = cluster.admin()  # which lives until it is answered
    described = admin.describe_consumer_groups(["readers"], request_timeout=30)
    return described["readers"].result(30).coordinator.id


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_when_its_coordinator_is_killed(cluster, topic, protocol):
    cluster.create(topic, PARTITIONS)
    client = Confluent(cluster.addresses)
    sent = [b"%d" % n for n in range(200)]

    def send(values: list[bytes]) -> None:
        client.produce(
            topic, [Record(None, value, partition=n % PARTITIONS) for n, value in enumerate(values)]
        )

    member = Member(cluster.addresses, topic, protocol)
    try:
        send(sent[:100])
        member.read_up_to(100)
        member.commit()
        cluster.kill(coordinator(cluster))
        send(sent[100:])
        member.read_up_to(200)
        assert sorted(member.seen) == sorted(sent), "each once"
        until(lambda: commits(member), MOVED_SECONDS_MAX, "a commit")
        assert member.committed() == 200
    finally:
        member.consumer.close()
        client.close()


def commits(member: Member) -> bool:
    """False while the new coordinator does not know the member yet, which a client may be told."""
    try:
        member.commit()
        return True
    except ck.KafkaException as refused:
        assert refused.args[0].retriable(), refused
        return False
