"""One consumer reads many partitions for long, as fetch sessions are made for, while partitions are
added to what it reads and taken away: each record comes once, from no other partition."""

from collections import defaultdict

import pytest

from harness.records import Record

PARTITIONS = 24
FOLLOWED = 16
ROUNDS = 20


class Followed:
    """What a consumer must have been given: the model that the client is compared with."""

    def __init__(self, client, topic: str):
        self.client, self.topic = client, topic
        self.positions: dict[int, int] = {}

    def follow(self, partitions: list[int]) -> None:
        self.positions = {partition: self.positions.get(partition, 0) for partition in partitions}
        self.client.follow(self.topic, partitions)

    def assert_catches_up(self, end: int) -> None:
        """The client takes all up to offset `end` of each partition followed."""
        expected = {
            partition: [b"%d of %d" % (offset, partition) for offset in range(start, end)]
            for partition, start in self.positions.items()
            if start < end
        }
        found = defaultdict(list)
        for record in self.client.take(sum(map(len, expected.values()))):
            assert record.value == b"%d of %d" % (record.offset, record.partition)
            found[record.partition].append(record.value)
        assert found == expected
        self.positions = dict.fromkeys(self.positions, end)


def send_one_to_each(writer, topic: str, offset: int, partitions: int) -> None:
    records = [
        Record(None, b"%d of %d" % (offset, partition), partition=partition)
        for partition in range(partitions)
    ]
    writer.produce(topic, records, linger_ms=5)


@pytest.mark.needs("follow")
def test_partitions_come_and_go_while_a_consumer_reads(client, clients, topic):
    writer = clients["confluent"]
    writer.create_topic(topic, PARTITIONS)
    followed = Followed(client, topic)
    for count in range(ROUNDS):
        if count % 3 == 0:  # three leave, three come, one of them after a pause
            followed.follow([(count + n) % PARTITIONS for n in range(FOLLOWED)])
        send_one_to_each(writer, topic, count, PARTITIONS)
        followed.assert_catches_up(count + 1)


@pytest.mark.needs("follow")
def test_a_consumer_that_waits_is_woken_by_any_of_its_partitions(client, clients, topic):
    writer = clients["confluent"]
    writer.create_topic(topic, PARTITIONS)
    client.follow(topic, list(range(PARTITIONS)))
    for partition in (23, 0, 11, 11, 5, 23):
        sent = Record(b"k", b"of %d" % partition, partition=partition)
        writer.produce(topic, [sent], linger_ms=0)
        (found,) = client.take(1)
        assert (found.value, found.partition) == (sent.value, partition)


@pytest.mark.needs("follow", "grow")
def test_partitions_that_did_not_exist_are_read_too(client, topic):
    client.create_topic(topic, 2)
    followed = Followed(client, topic)
    followed.follow([0, 1])
    send_one_to_each(client, topic, 0, 2)
    followed.assert_catches_up(1)
    client.grow(topic, 5)
    client.wait_until_ready(topic, 5)
    send_one_to_each(client, topic, 1, 2)
    for partition in (2, 3, 4):
        records = [Record(None, b"%d of %d" % (n, partition), partition=partition) for n in (0, 1)]
        client.produce(topic, records)
    followed.follow([0, 1, 2, 3, 4])
    followed.assert_catches_up(2)
