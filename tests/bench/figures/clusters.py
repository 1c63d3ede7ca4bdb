"""Clusters of three brokers that are compared, each with its makers' own settings, but that all replicas of a partition
are three and what is acknowledged is on two at least."""

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from figures.subjects import STOCK_JAVA, StockKafka, StockMillrace
from harness import maven
from harness.broker import ApacheKafka39, Broker
from harness.zookeeper import ZooKeeper
from parts.cluster import Cluster, ClusterBroker

BROKERS = 3
SESSION_MS = 6000
"""Millrace's default."""
CLUSTER_ID = "bWlsbHJhY2UtYmVuY2gtMA"


class MillraceCluster(Cluster):
    title = "Millrace"

    def __init__(self, folder: Path, build: Path):
        super().__init__(folder, BROKERS, session_ms=SESSION_MS)
        self.build = build

    def make(self, id: int, folder: str | None = None) -> ClusterBroker:
        broker = super().make(id, folder)
        broker.prefix = self.build
        broker.shards = StockMillrace.shards
        return broker


class KafkaCluster(Cluster):
    """KRaft, every broker a controller too."""

    title = "Apache Kafka"

    def __init__(self, folder: Path, _build: Path):
        super().__init__(folder, BROKERS)
        names = range(1, BROKERS + 1)
        self.brokers = {id: self.make(id) for id in names}

    def make(self, id: int, folder: str | None = None) -> Broker:
        broker = StockKafka(self.folder / (folder or f"broker-{id}"), self.settings(id))
        broker.id = id
        broker.cluster_id = CLUSTER_ID
        return broker

    def settings(self, id: int) -> dict[str, object]:
        return {
            "node.id": id,
            "default.replication.factor": BROKERS,
            "min.insync.replicas": BROKERS - 1,
            "offsets.topic.replication.factor": BROKERS,
            "transaction.state.log.replication.factor": BROKERS,
            "transaction.state.log.min.isr": BROKERS - 1,
            "share.coordinator.state.topic.replication.factor": BROKERS,
            "share.coordinator.state.topic.min.isr": BROKERS - 1,
        }

    def start(self) -> "KafkaCluster":
        voters = ",".join(
            f"{one.id}@127.0.0.1:{one.controller_port}" for one in self.brokers.values()
        )
        for broker in self.brokers.values():
            broker.defaults["controller.quorum.voters"] = voters
        return self.start_together()

    def start_together(self) -> "KafkaCluster":
        """One alone would wait for the others."""
        with ThreadPoolExecutor() as starters:
            list(starters.map(lambda broker: broker.start(), self.brokers.values()))
        self.wait_for_brokers(BROKERS)
        return self


class Kafka39(ApacheKafka39):
    def _start_zookeeper(self) -> None:
        """The cluster has one."""

    @staticmethod
    def _java() -> list[str]:
        return ["java", *STOCK_JAVA, "-cp", maven.classpath("broker-3.9")]


class Kafka39Cluster(KafkaCluster):
    title = "Apache Kafka 3.9"

    def make(self, id: int, folder: str | None = None) -> Broker:
        broker = Kafka39(self.folder / (folder or f"broker-{id}"), self.settings(id))
        broker.id = id
        return broker

    def start(self) -> "Kafka39Cluster":
        self.zookeepers = [ZooKeeper(self.folder / "zookeeper").start()]
        for broker in self.brokers.values():
            del broker.defaults["node.id"]
            broker.defaults |= {
                "broker.id": broker.id,
                "zookeeper.connect": self.zookeepers[0].address,
                "inter.broker.protocol.version": "3.9",
            }
        return self.start_together()


@contextmanager
def fresh_cluster(kind: type[Cluster], build: Path) -> Iterator[Cluster]:
    """Started, in a folder that goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench."))
    cluster = kind(folder / "cluster", build)
    try:
        yield cluster.start()
    finally:
        cluster.close()
        shutil.rmtree(folder)
