"""Leaders move again and again while nobody dies, or in the midst of something else: producers, groups and new topics
notice nothing that they would have to tell. P09, I07, G09 and R09 are numbers of the list of scenarios."""

import threading
from contextlib import ExitStack

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import NewTopic
from harness import groups
from harness.batches import record_batch
from harness.wire import RawConnection

from parts.checked import Checked
from parts.cluster import Cluster
from parts.history import History, violations
from parts.load import Load, consumer_of, read_log
from parts.moves import STILL, move_leader
from parts.waiting import until

NONE, REQUEST_TIMED_OUT, NOT_LEADER = 0, 7, 6
RETRIABLE = {REQUEST_TIMED_OUT, NOT_LEADER, 5, 19, 20}
"""LEADER_NOT_AVAILABLE, and too few in sync before and after it was written."""
FEW, MANY = 4, 30
OFFSETS_TOPIC = "__consumer_offsets"
GROUP = "moved"
COMMITTED = {0: 11, 1: 12}


@pytest.fixture
def cluster(make_cluster) -> Cluster:
    return make_cluster(defaults={**STILL, "offsets.topic.num.partitions": 1})


class Asking:
    """Within it every broker is asked by a thread of its own, over and over, whatever it answers."""

    def __init__(self, cluster: Cluster, ask):
        self.failures: list[BaseException] = []
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(broker, ask)) for broker in cluster.brokers.values()
        ]

    def __enter__(self) -> "Asking":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _run(self, broker, ask) -> None:
        while not self._ending.is_set() and not self.failures:
            try:
                with RawConnection(broker.address) as connection:
                    while not self._ending.is_set():
                        ask(broker, connection)
            except OSError:  # it is down
                self._ending.wait(0.05)
            except BaseException as failure:
                self.failures.append(failure)


def values_of(cluster: Cluster, topic: str) -> dict[int, bytes]:
    """By offset, of partition 0."""
    end = cluster.bounds(topic, 0)[1]
    consumer = consumer_of(cluster.addresses)
    found: dict[int, bytes] = {}
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        while max(found, default=-1) < end - 1:
            message = consumer.poll(30)
            assert message is not None and message.error() is None, message
            found[message.offset()] = message.value()
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("moves", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_P09_a_leader_that_moves_in_a_loop_refuses_only_for_a_moment(cluster, topic, moves):
    """Who sends with retries sees no failure; who asks any broker without them only what says that it may try again."""
    asked = f"{topic}-asked"
    cluster.create(asked, 1)
    numbers = iter(range(10_000_000))
    answers: list[tuple[int, int, bytes]] = []

    def send(_, connection: RawConnection) -> None:
        value = b"%d" % next(numbers)
        error, offset = connection.produce_at(asked, 0, record_batch([value]), 7)
        answers.append((error, offset, value))

    with Checked(cluster, topic, partitions=1) as checked, Asking(cluster, send) as asking:
        for _ in range(moves):
            move_leader(cluster, topic)
            move_leader(cluster, asked)
            checked.goes_on(20)
        checked.verdict()
    assert not asking.failures, asking.failures
    codes = {error for error, _, _ in answers}
    assert codes <= {NONE, *RETRIABLE}, codes
    assert NOT_LEADER in codes
    stored = values_of(cluster, asked)
    for error, offset, value in answers:
        assert error != NONE or stored[offset] == value, (offset, value, stored.get(offset))
    cluster.end()


@pytest.mark.slow
def test_I07_idempotent_producers_of_one_to_five_in_flight(cluster, topic):
    """Each message is stored once, in order, over leaders that move, and one that is killed."""
    loads: dict[int, Load] = {}
    with ExitStack() as running:
        for number in range(1, 6):
            cluster.create(f"{topic}-{number}", 1)
            loads[number] = running.enter_context(
                Load(cluster.addresses, f"{topic}-{number}", History(), batch=5, in_flight=number)
            )
        for _ in range(FEW):
            for load in loads.values():
                move_leader(cluster, load.topic)
                load.wait_for_acknowledged(20)
        killed = cluster.kill_leader(f"{topic}-5")
        for load in loads.values():
            load.wait_for_acknowledged(20)
        cluster.brokers[killed].start()
        for load in loads.values():
            load.finish()
    for load in loads.values():
        cluster.wait_until_healed(load.topic)
        load.history.log = read_log(cluster.addresses, load.topic, 1)
        assert violations(load.history) == []
        assert len(load.history.acknowledged) == len(load.history.sent)
    cluster.end()


@pytest.mark.slow
def test_G09_a_coordinator_that_has_just_come_tells_no_offsets_before_it_has_loaded_them(
    cluster, topic
):
    """Every broker is asked all the time, while the coordinator moves, is killed, and all are: never "none"."""
    cluster.create(topic, len(COMMITTED))
    with RawConnection(cluster.brokers[1].address) as connection:
        until(
            lambda: groups.ask(connection, groups.find(GROUP)) == NONE, 30, "a coordinator of the group"
        )
    cluster.wait_until_healed(OFFSETS_TOPIC)
    with RawConnection(cluster.brokers[cluster.leader(OFFSETS_TOPIC)].address) as connection:
        commit = groups.commit(GROUP, topic, COMMITTED)
        taken = dict.fromkeys(COMMITTED, NONE)
        until(lambda: groups.ask(connection, commit) == taken, 30, "the commit")
    told: list[int] = []
    right = {number: (offset, NONE) for number, offset in COMMITTED.items()}

    def ask(broker, connection: RawConnection) -> None:
        error, found = groups.ask(connection, groups.offsets(GROUP, topic, COMMITTED))
        if {error, *(one for _, one in found.values())} & groups.STARTING:
            return
        assert (error, found) == (NONE, right), (broker.id, error, found)
        told.append(broker.id)

    def is_told_again(by: int) -> None:
        before = len(told)
        until(lambda: by in told[before:] or asking.failures, 60, f"offsets from broker {by}")
        assert not asking.failures, asking.failures

    with Asking(cluster, ask) as asking:
        for _ in range(MANY):
            is_told_again(move_leader(cluster, OFFSETS_TOPIC))
        killed = cluster.kill_leader(OFFSETS_TOPIC)
        is_told_again(cluster.leader(OFFSETS_TOPIC))
        cluster.brokers[killed].start()
        cluster.wait_until_healed(OFFSETS_TOPIC)
        cluster.kill(*cluster.brokers)
        for broker in cluster.brokers.values():
            broker.start()
        is_told_again(cluster.leader(OFFSETS_TOPIC))
    assert not asking.failures, asking.failures
    cluster.end()


@pytest.mark.slow
def test_R09_a_topic_whose_first_leader_dies_at_once_outlives_all_brokers(make_cluster, topic):
    """Messages come the moment that it is there; then everybody dies, and it goes on from what they have."""
    cluster = make_cluster(defaults={"auto.create.topics.enable": "false"})
    for number in range(FEW):
        name = f"{topic}-{number}"
        history = History()
        admin = cluster.admin()  # which lives until it is answered, or its broker is dead
        admin.create_topics([NewTopic(name, 3, 3)], operation_timeout=30)
        with Load(cluster.addresses, name, history) as load:
            first = cluster.leader(name)
            cluster.kill(first)
            load.wait_for_acknowledged(50)
            cluster.kill(*(id for id, one in cluster.brokers.items() if one.running))
            for broker in cluster.brokers.values():
                broker.start()
            load.wait_for_acknowledged(100)
            cluster.wait_until_healed(name)
            load.finish()
        history.log = read_log(cluster.addresses, name, 3)
        assert violations(history) == []
        assert len(history.acknowledged) == len(history.sent)
    cluster.end()
