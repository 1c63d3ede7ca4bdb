"""A cluster as processes on this machine: brokers of Millrace and one ZooKeeper, or an ensemble."""

import os
import re
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic
from harness.broker import Millrace
from harness.zookeeper import ZooKeeper, ensemble

from parts.load import close, consumer_of, watermarks
from parts.waiting import until

SLOWDOWN = int(os.environ.get("MILLRACE_SLOWDOWN", 1))
"""How much longer brokers take that are built with a sanitizer."""
SESSION_MS = 2000 * SLOWDOWN
"""Long enough for a busy machine, short enough to wait for in a test."""
HEAL_SECONDS_MAX = 60 * SLOWDOWN
FOUND = re.compile(
    r"(ERROR|WARNING): \w+Sanitizer|runtime error: |assertion failed|something still waited at the end",
    re.IGNORECASE,
)
"""What is in the log of a broker that a sanitizer, or a check of its own, has caught."""


class ClusterBroker(Millrace):
    """One of several."""

    stop_seconds_max = 30 * SLOWDOWN

    def __init__(self, folder: Path, id: int, zookeeper: str, options: "Options"):
        self.id = id
        super().__init__(
            folder,
            options.defaults,
            {
                "broker.rack": options.racks[(id - 1) % len(options.racks)],
                "coordination.plugin": "zookeeper",
                "coordination.connect": zookeeper,
                "coordination.session-timeout": options.session_ms,
                **options.settings,
                **options.own.get(id, {}),
            },
            options.prefix,
        )
        self.address = self.settings.get("transport.kafka.listen", self.address)

    def caught(self) -> list[str]:
        return [line for line in self.log_text().splitlines() if FOUND.search(line)]

    @property
    def running(self) -> bool:
        return self.process is not None

    def wipe(self) -> None:
        """Its disk is empty. Not while it runs."""
        assert self.process is None
        shutil.rmtree(self.folder / "data")

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@dataclass
class Options:
    defaults: dict[str, object]
    settings: dict[str, object]
    racks: tuple[str, ...]
    session_ms: int
    own: dict[int, dict[str, object]] = field(default_factory=dict)
    prefix: Path | None = None


@dataclass(frozen=True)
class PartitionState:
    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


class Cluster:
    """Brokers are numbered from 1. `defaults` are Kafka's settings, `settings` Millrace's options, of
    every broker; `own` those of one, by its number. They run what `prefix` holds, if not the build
    under test."""

    def __init__(
        self,
        folder: Path,
        brokers: int = 3,
        *,
        defaults: dict[str, object] | None = None,
        settings: dict[str, object] | None = None,
        own: dict[int, dict[str, object]] | None = None,
        racks: tuple[str, ...] = ("",),
        session_ms: int = SESSION_MS,
        zookeepers: int = 1,
        prefix: Path | None = None,
    ):
        folder.mkdir(parents=True)
        self.folder = folder
        replicas = min(brokers, 3)
        self.options = Options(
            {
                "default.replication.factor": replicas,
                "min.insync.replicas": max(1, replicas - 1),
                "offsets.topic.replication.factor": replicas,
                "num.partitions": 3,
                **(defaults or {}),
            },
            settings or {},
            racks,
            session_ms,
            own or {},
            prefix,
        )
        self.size = brokers
        self.zookeepers_wanted = zookeepers
        self.zookeepers: list[ZooKeeper] = []
        self.brokers: dict[int, ClusterBroker] = {}

    # ---- processes ----

    def start(self) -> "Cluster":
        self.zookeepers = self.start_zookeepers()
        for _ in range(self.size):
            self.add()
        self.wait_for_brokers(self.size)
        return self

    def start_zookeepers(self) -> list[ZooKeeper]:
        if self.zookeepers_wanted == 1:
            return [ZooKeeper(self.folder / "zookeeper").start()]
        return ensemble(self.folder, self.zookeepers_wanted)

    @property
    def connect(self) -> str:
        """What brokers are told of ZooKeeper."""
        return ",".join(one.address for one in self.zookeepers) + "/millrace"

    def make(self, id: int, folder: str | None = None) -> ClusterBroker:
        """A broker that is not started, of this cluster or of another one's folder."""
        path = self.folder / (folder or f"broker-{id}")
        return ClusterBroker(path, id, self.connect, self.options)

    def add(self) -> ClusterBroker:
        """One more, started."""
        id = max(self.brokers, default=0) + 1
        self.brokers[id] = self.make(id)
        return self.brokers[id].start()

    def kill(self, *ids: int) -> None:
        for id in ids:
            self.brokers[id].process.kill()
        for id in ids:
            self.brokers[id].kill()

    def stop(self, id: int) -> float:
        """In order; how long it took."""
        code, seconds = self.brokers[id].stop()
        assert code == self.brokers[id].stop_code, self.brokers[id].log_tail()
        return seconds

    def end(self) -> None:
        """Every broker that runs stops in order, and says that it is well."""
        for broker in self.brokers.values():
            broker.end()

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        for zookeeper in self.zookeepers:
            zookeeper.close()

    def assert_nothing_caught(self) -> None:
        """A test that kills a broker may not notice that it was dead already, of an error of its own."""
        caught = {id: lines for id, one in self.brokers.items() if (lines := one.caught())}
        assert not caught, caught

    # ---- what it says of itself ----

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def admin(self, id: int | None = None) -> AdminClient:
        address = self.addresses if id is None else self.brokers[id].address
        return AdminClient({"bootstrap.servers": address, "log_level": 0})

    def metadata(self, topic: str | None = None, id: int | None = None):
        """As broker `id` tells it, or any; asked again until one answers."""

        def told():
            try:
                return self.admin(id).list_topics(topic, timeout=5)
            except ck.KafkaException:
                return None

        return until(told, HEAL_SECONDS_MAX, "an answer to Metadata")

    def wait_for_brokers(self, count: int, id: int | None = None) -> None:
        def known() -> bool:
            return len(self.metadata(id=id).brokers) == count

        until(known, HEAL_SECONDS_MAX, f"{count} brokers in the metadata")

    def controller(self) -> int:
        def elected() -> int:
            return max(self.metadata().controller_id, 0)

        return until(elected, HEAL_SECONDS_MAX, "a controller")

    def create(self, topic: str, partitions: int, replicas: int = 3, **configs: object) -> None:
        config = {name.replace("_", "."): str(value) for name, value in configs.items()}
        wanted = NewTopic(topic, partitions, replicas, config=config)
        admin = self.admin()  # which lives until it is answered
        admin.create_topics([wanted], operation_timeout=30)[topic].result(60)
        for partition in range(partitions):
            self.wait_for_in_sync(topic, partition, replicas)

    def delete(self, topic: str) -> None:
        admin = self.admin()
        admin.delete_topics([topic], operation_timeout=30)[topic].result(60)

    def trim(self, topic: str, partition: int) -> None:
        """All that all replicas have is deleted."""
        all_of_it = ck.TopicPartition(topic, partition, ck.OFFSET_END)
        admin = self.admin()
        admin.delete_records([all_of_it], request_timeout=30)[all_of_it].result(60)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Where the partition's log begins, and where it ends for readers."""
        consumer = consumer_of(self.addresses)
        try:
            return watermarks(consumer, topic, partition)
        finally:
            close(consumer)

    def states(self, topic: str) -> dict[int, PartitionState]:
        """By partition; none while there is no such topic where it is asked for."""
        told = self.metadata(topic)
        if told.topics[topic].error:
            return {}
        return {
            number: PartitionState(one.leader, tuple(one.replicas), frozenset(one.isrs))
            for number, one in told.topics[topic].partitions.items()
        }

    def leader(self, topic: str, partition: int = 0, *, other_than: int = -1) -> int:
        def led() -> int:
            state = self.states(topic).get(partition)
            return state.leader if state and state.leader not in (-1, other_than) else 0

        return until(led, HEAL_SECONDS_MAX, f"a leader of {topic}-{partition}")

    def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Kills it; who it was, once another one leads."""
        leader = self.leader(topic, partition)
        self.kill(leader)
        self.leader(topic, partition, other_than=leader)
        return leader

    def follower(self, topic: str, partition: int = 0) -> int:
        """One that is in sync and does not lead."""
        leader = self.leader(topic, partition)
        return min(self.states(topic)[partition].in_sync - {leader})

    def wait_for_in_sync(
        self, topic: str, partition: int, count: int, seconds: float = HEAL_SECONDS_MAX
    ) -> float:
        """How long it took until so many replicas, and no more, are in sync."""
        started = time.monotonic()

        def settled() -> bool:
            state = self.states(topic).get(partition)
            return state is not None and state.leader >= 0 and len(state.in_sync) == count

        until(settled, seconds, f"{count} replicas of {topic}-{partition} in sync")
        return time.monotonic() - started

    def is_healed(self, topic: str) -> bool:
        """Every replica of the topic is in sync."""
        states = self.states(topic)
        return bool(states) and all(
            one.leader >= 0 and one.in_sync == set(one.replicas) for one in states.values()
        )

    def wait_until_healed(self, topic: str) -> None:
        what = f"all replicas of {topic} in sync: {self.states(topic)}"
        until(lambda: self.is_healed(topic), HEAL_SECONDS_MAX, what)
