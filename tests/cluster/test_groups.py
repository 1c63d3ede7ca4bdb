"""Consumer groups, whose coordinators move with their partitions' leaders."""

import confluent_kafka as ck
import pytest
from harness import groups
from harness.confluent import Confluent
from harness.records import Record
from harness.tool import Tool
from harness.wire import RawConnection

from parts.waiting import until

PARTITIONS = 3
MOVED_SECONDS_MAX = 90
INTERVAL_MS, OWN_INTERVAL_MS = 5000, 9000
"""What Kafka tells members by default, and what one group has for itself."""


class Member:
    def __init__(self, addresses: str, topic: str, protocol: str, reset: str = "earliest"):
        self.topic = topic
        self.seen: list[bytes] = []
        self.consumer = ck.Consumer(
            {
                "bootstrap.servers": addresses,
                "group.id": "readers",
                "group.protocol": protocol,
                "auto.offset.reset": reset,
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

    def wait_until_placed(self) -> None:
        """It has all partitions, and has asked for what comes next in each."""

        def placed() -> bool:
            self.consumer.poll(0.2)
            mine = self.consumer.assignment()
            ends = [self.consumer.get_watermark_offsets(one, cached=True)[1] for one in mine]
            return len(ends) == PARTITIONS and all(end >= 0 for end in ends)

        until(placed, MOVED_SECONDS_MAX, "a position in each partition")

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def committed(self) -> int:
        partitions = [ck.TopicPartition(self.topic, n) for n in range(PARTITIONS)]
        return sum(max(0, one.offset) for one in self.consumer.committed(partitions, timeout=30))


def coordinator(cluster) -> int:
    admin = cluster.admin()  # which lives until it is answered
    described = admin.describe_consumer_groups(["readers"], request_timeout=30)
    return described["readers"].result(30).coordinator.id


@pytest.mark.sanitized
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_reader_of_what_is_new_misses_nothing_when_its_coordinator_is_killed(
    cluster, topic, protocol
):
    """G15: it has its place, and keeps it, though it has committed nothing."""
    cluster.create(topic, PARTITIONS)
    client = Confluent(cluster.addresses)
    member = Member(cluster.addresses, topic, protocol, reset="latest")
    try:
        member.wait_until_placed()
        cluster.kill(coordinator(cluster))
        sent = [b"%d" % n for n in range(100)]
        client.produce(
            topic, [Record(None, value, partition=n % PARTITIONS) for n, value in enumerate(sent)]
        )
        member.read_up_to(len(sent))
        assert sorted(member.seen) == sorted(sent), "each once"
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


def beat(cluster, group: str, topic: str, member: str, epoch: int) -> tuple[int, groups.Beat]:
    """A heartbeat, and which broker has answered it: the group's coordinator."""

    def answered() -> tuple[int, groups.Beat] | None:
        for id, broker in cluster.brokers.items():
            if not broker.running:
                continue
            joins = epoch == 0
            question = groups.consumer_heartbeat(
                group,
                member,
                epoch,
                topics=[topic] if joins else None,
                owned={} if joins else None,
                rebalance_ms=5000 if joins else -1,
            )
            with RawConnection(broker.address) as connection:
                told = groups.ask(connection, question)
            if told.error not in groups.STARTING:
                return id, told
        return None

    return until(answered, MOVED_SECONDS_MAX, f"a coordinator of {group}")


def test_a_groups_settings_are_set_at_any_broker_and_move_with_it(cluster, topic):
    """What is told at one broker counts at the coordinator on another, and at the next one."""
    cluster.create(topic, PARTITIONS)
    first, joined = beat(cluster, "settings", topic, "m1", 0)
    assert (joined.error, joined.interval_ms) == (groups.NONE, INTERVAL_MS), joined
    other = min(set(cluster.brokers) - {first})
    setting = f"consumer.heartbeat.interval.ms={OWN_INTERVAL_MS}"
    Tool(cluster.brokers[other].address).text(
        "config", "alter", "--group", "settings", "--set", setting
    )

    def told() -> int:
        return beat(cluster, "settings", topic, "m1", joined.epoch)[1].interval_ms

    until(lambda: told() == OWN_INTERVAL_MS, MOVED_SECONDS_MAX, "the interval at its coordinator")
    cluster.kill(first)
    moved, again = beat(cluster, "settings", topic, "m2", 0)
    assert moved != first
    assert (again.error, again.interval_ms) == (groups.NONE, OWN_INTERVAL_MS), again
    _, elsewhere = beat(cluster, "settings-other", topic, "m1", 0)
    assert elsewhere.interval_ms == INTERVAL_MS, "of other groups nothing has changed"
