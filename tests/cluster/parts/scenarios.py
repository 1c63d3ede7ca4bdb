"""What is done to a sound cluster, which survives it, and to broken ones, where the checker finds
it. Each answers the violations that were found."""

import confluent_kafka as ck
from harness.wire import RawConnection

from parts.cluster import Cluster, ClusterBroker
from parts.history import History, violations
from parts.load import Load, read_log
from parts.waiting import pass_time, until

ALONE_SECONDS = 1.0
"""Less than a session, however busy the machine is."""
LONG_SESSION_MS = 10_000
"""Time enough for what is done while a follower is held up, on a busy machine."""
TAIL_SECONDS_MAX = 5
TAIL = range(900_000, 900_010)
"""Messages that no history has."""
TAIL_KEY = b"tail"
AFTERWARDS = 10_000


def after_a_leader_died_alone(cluster: Cluster, topic: str) -> list[str]:
    """Its followers were held up, so that it was the last to have what it was sent; then it died.
    What it has acknowledged must be with the others."""
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history) as load:
        load.wait_for_acknowledged(200)
        with _held_up(cluster, topic) as leader:
            cluster.kill(leader)
        cluster.leader(topic, other_than=leader)
        pass_time(ALONE_SECONDS)
        errors = load.stop()
    cluster.brokers[leader].start()
    cluster.wait_until_healed(topic)
    history.log = read_log(cluster.addresses, topic, 1)
    return errors + violations(history)


def after_a_tail_of_one(cluster: Cluster, topic: str) -> list[str]:
    """A leader died with messages that nobody else has. It comes back, others lead and have written
    something else there; in the end it leads again, alone."""
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history) as load:
        load.wait_for_acknowledged(200)
        load.finish()
    with _held_up(cluster, topic) as leader:
        _send_tail(cluster.brokers[leader], topic)
        with RawConnection(cluster.brokers[leader].address) as direct:
            error, records = direct.fetch(topic, 0)
        shown = [] if error == 0 and records and TAIL_KEY not in records else ["the tail was shown"]
        cluster.kill(leader)
    cluster.leader(topic, other_than=leader)
    # One in a batch, as in the tail: no batch reaches over the place where the tail ends.
    with Load(cluster.addresses, topic, history, first=AFTERWARDS, batch=1) as load:
        load.wait_for_acknowledged(200)
        load.finish()
    cluster.brokers[leader].start()
    cluster.wait_until_healed(topic)
    others = [id for id in cluster.brokers if id != leader]
    cluster.kill(*others)
    until(lambda: cluster.leader(topic) == leader, 60, "the first leader leads again")
    history.log = read_log(cluster.brokers[leader].address, topic, 1)
    for id in others:
        cluster.brokers[id].start()
    return shown + violations(history)


def after_a_zombie(cluster: Cluster, topic: str) -> list[str]:
    """A leader slept past its session, and is sent to as if it led still, by a producer that waits
    for it alone: one that was connected before, for a new one may ask any broker who leads."""
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history, acks="1") as unaware:
        unaware.wait_for_acknowledged(1)
        with unaware.held():
            # All replicas have what is before this.
            with Load(cluster.addresses, topic, history, first=AFTERWARDS) as load:
                load.wait_for_acknowledged(200)
                load.finish()
            zombie = cluster.leader(topic)
            cluster.brokers[zombie].pause()
            cluster.leader(topic, other_than=zombie)
            cluster.brokers[zombie].go_on()
        unaware.wait_for_acknowledged(100)
        unaware.finish()
    others = ",".join(one.address for id, one in cluster.brokers.items() if id != zombie)
    history.log = read_log(others, topic, 1)
    return violations(history)


def after_nothing(cluster: Cluster, topic: str) -> list[str]:
    """A load, and no fault at all."""
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history) as load:
        pass_time(5)
        errors = load.stop()
    history.log = read_log(cluster.addresses, topic, 1)
    return errors + violations(history)


class _held_up:
    """All but the leader, which this answers, do nothing within it."""

    def __init__(self, cluster: Cluster, topic: str):
        self.leader = cluster.leader(topic)
        self.others = [one for id, one in cluster.brokers.items() if id != self.leader]

    def __enter__(self) -> int:
        for one in self.others:
            one.pause()
        pass_time(ALONE_SECONDS)
        return self.leader

    def __exit__(self, *_) -> None:
        for one in self.others:
            one.go_on()


def _send_tail(leader: ClusterBroker, topic: str) -> None:
    """To the leader's log; nobody is there who would acknowledge it."""
    producer = ck.Producer(
        {
            "bootstrap.servers": leader.address,
            "acks": "all",
            "message.timeout.ms": TAIL_SECONDS_MAX * 1000,
            "message.send.max.retries": 0,
            "batch.num.messages": 1,
            "log_level": 0,
        }
    )
    for number in TAIL:
        producer.produce(topic, b"%d" % number, TAIL_KEY, partition=0)

    def written() -> bool:
        producer.poll(0)
        return any(b"%d" % TAIL[-1] in bytes for bytes in _segments(leader, topic))

    until(written, TAIL_SECONDS_MAX, "the tail is in the leader's log")
    producer.purge()


def _segments(broker: ClusterBroker, topic: str) -> list[bytes]:
    return [path.read_bytes() for path in (broker.folder / "data" / f"{topic}-0").glob("*.log")]
