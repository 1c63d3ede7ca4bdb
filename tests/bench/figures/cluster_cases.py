"""What is measured of three brokers: cases as in cases.py, whose figures are those of all three together. ZooKeeper's are
not among them."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from figures.cases import OTHERS, Bench, Case, Figures, idle, latencies, produce
from figures.gaps import Java, Librdkafka, Producer
from parts.cluster import Cluster
from parts.waiting import until

IDLE_SECONDS = 20
TIMES = 3
"""So often a leader goes for one client: when in a heartbeat or a client's pause that is, is chance."""
MANY = 3000
SETTLED_SECONDS_MAX = 300
FLOOR_MEGABYTES = 600


class ClusterBench(Bench):
    replicas = 3

    def __init__(self, cluster: Cluster, build: Path, scale: float):
        self.cluster = cluster
        self.build = build
        self.scale = scale
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    @property
    def address(self) -> str:
        return self.cluster.addresses

    @property
    def pids(self) -> list[int]:
        return [broker.process.pid for broker in self.cluster.brokers.values()]

    def log_tail(self) -> str:
        return "\n".join(broker.log_tail() for broker in self.cluster.brokers.values())

    def make_topic(self, name: str, partitions: int) -> str:
        super().make_topic(name, partitions)
        self.cluster.wait_until_healed(name)
        return name


def floor(build: Path, folder: Path, scale: float) -> float:
    """CPU seconds per GB of a plain program that keeps three replicas: load/floor.cc."""
    megabytes = max(10, int(FLOOR_MEGABYTES * scale))
    command = [build / "bin" / "bench-floor", f"--folder={folder}", f"--megabytes={megabytes}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    taken = json.loads(done.stdout)
    return taken["cpu_seconds"] / (taken["bytes"] / 1e9)


def warm_up(bench: ClusterBench) -> Figures:
    topic = bench.make_topic("warm-up", 12)
    count = bench.messages(800_000)
    bench.load("produce", topic=topic, partitions=12, messages=count, bytes=500)
    bench.load("consume", topic=topic, partitions=12, messages=count)
    bench.load("paced", topic=topic, per_second=2000, seconds=4)
    bench.remove_topic(topic)
    return {}


def paced(bench: ClusterBench) -> Figures:
    topic = bench.make_topic("paced", 1)
    taken = bench.load("paced", topic=topic, bytes=100, per_second=1000, seconds=10)
    bench.remove_topic(topic)
    return latencies(taken) | {
        "broker CPU us/message": 1e6 * taken["broker_cpu_seconds"] / taken["messages"]
    }


def leader_goes(client: type[Producer], go: Callable[[Cluster, int], None], name: str):
    """Figures of `TIMES` times: from the moment at which it is told to go."""

    def gaps(bench: ClusterBench) -> tuple[list[float], list[float]]:
        cluster = bench.cluster
        topic = bench.make_topic(f"{name}-{client.title}", 1)
        until_next, longest = [], []
        for _ in range(TIMES):
            leader = cluster.leader(topic)
            with client(cluster.addresses, topic) as producer:
                told = time.monotonic()
                go(cluster, leader)
                gone = time.monotonic()
                until_next.append(producer.wait_for_acknowledgement(told) - told)
                producer.wait_for_acknowledgement(max(gone, told + until_next[-1]) + 1)
                longest.append(producer.longest_gap(told))
            cluster.brokers[leader].start()
            cluster.wait_for_brokers(len(cluster.brokers))
            cluster.wait_until_healed(topic)
        bench.remove_topic(topic)
        return until_next, longest

    return gaps


def killed(client: type[Producer]):
    measured = leader_goes(client, Cluster.kill, "killed")

    def run(bench: ClusterBench) -> Figures:
        until_next, _ = measured(bench)
        return {
            "acknowledged again, median in s": sorted(until_next)[TIMES // 2],
            "acknowledged again, worst s": max(until_next),
        }

    return run


def stopped(client: type[Producer]):
    measured = leader_goes(client, Cluster.stop, "stopped")

    def run(bench: ClusterBench) -> Figures:
        _, longest = measured(bench)
        return {
            "longest gap, median ms": 1000 * sorted(longest)[TIMES // 2],
            "longest gap, worst ms": 1000 * max(longest),
        }

    return run


class Observer:
    """What each of some brokers tells of a topic."""

    def __init__(self, cluster: Cluster, ids: list[int]):
        self.admins = {id: cluster.admin(id) for id in ids}

    def all_lead(self, topic: str, partitions: int, without: int = -1) -> bool:
        return all(
            sum(one.leader not in (-1, without) for one in self._partitions(admin, topic))
            == partitions
            for admin in self.admins.values()
        )

    def all_in_sync(self, topic: str, partitions: int, replicas: int) -> bool:
        told = self._partitions(next(iter(self.admins.values())), topic)
        return len(told) == partitions and all(len(one.isrs) == replicas for one in told)

    def one_misses(self, id: int, topic: str) -> bool:
        """`topic`: a small one, which is quickly told of."""
        return any(
            id not in admin.list_topics(topic, timeout=30).brokers for admin in self.admins.values()
        )

    def _partitions(self, admin: AdminClient, topic: str) -> list:
        return list(admin.list_topics(topic, timeout=30).topics[topic].partitions.values())


def many_partitions(bench: ClusterBench) -> Figures:
    cluster = bench.cluster
    small = bench.make_topic("small", 1)
    everyone = Observer(cluster, list(cluster.brokers))
    everyone.one_misses(0, small)  # connections are there
    started = time.monotonic()
    wanted = NewTopic("many", MANY, bench.replicas)
    bench.admin.create_topics([wanted], operation_timeout=60)["many"].result(120)
    until(lambda: everyone.all_lead("many", MANY), SETTLED_SECONDS_MAX, "all partitions led")
    figures = {"created in s": time.monotonic() - started}
    settled(everyone)

    figures |= {
        name: value for name, value in idle(bench, IDLE_SECONDS).items() if name != OTHERS
    }

    id = cluster.leader(small)
    started = time.monotonic()
    cluster.stop(id)
    figures["a broker stopped in s"] = time.monotonic() - started
    started = time.monotonic()
    cluster.brokers[id].start()
    figures["started in s"] = time.monotonic() - started
    settled(everyone)
    figures["its replicas in sync in s"] = time.monotonic() - started

    id = cluster.leader(small)
    others = Observer(cluster, [one for one in cluster.brokers if one != id])
    others.one_misses(0, small)
    cluster.kill(id)
    until(lambda: others.one_misses(id, small), SETTLED_SECONDS_MAX, "a dead broker missed")
    started = time.monotonic()
    until(lambda: others.all_lead("many", MANY, id), SETTLED_SECONDS_MAX, "leaders moved")
    figures["leaders of a dead broker moved in s"] = time.monotonic() - started
    cluster.brokers[id].start()
    return figures


def settled(everyone: Observer) -> None:
    until(lambda: everyone.all_in_sync("many", MANY, 3), SETTLED_SECONDS_MAX, "all in sync")


CLUSTER_CASES = [
    Case("RF 3, idle", lambda bench: idle(bench, IDLE_SECONDS)),
    Case("warm-up", warm_up),
    Case("RF 3, produce 1 KiB, P=1", produce(1024, 600_000, 1)),
    Case("RF 3, produce 1 KiB, P=12", produce(1024, 600_000, 12)),
    Case("RF 3, 1,000 messages/s, acknowledged after", paced),
    Case("RF 3, leader stopped, librdkafka", stopped(Librdkafka)),
    Case("RF 3, leader stopped, Java", stopped(Java)),
    Case("RF 3, leader killed, librdkafka", killed(Librdkafka)),
    Case("RF 3, leader killed, Java", killed(Java)),
    Case("RF 3, 3,000 partitions", many_partitions),
]
