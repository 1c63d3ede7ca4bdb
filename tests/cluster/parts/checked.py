"""A load and its readers over one topic, and the verdict at the end."""

from contextlib import ExitStack

from parts.cluster import Cluster
from parts.history import History, violations
from parts.load import Load, Reader, read_log

PARTITIONS = 3
SHOWN_MAX = 5
READERS = ("one reader", "another reader")


class Checked:
    """Use as a context manager around what is done to the cluster; `verdict()` inside it, once the
    cluster is as it shall be, checks everything that was seen."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        replicas: int = 3,
        partitions: int = PARTITIONS,
        is_made: bool = False,
    ):
        self.cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.history = History()
        if not is_made:
            cluster.create(topic, partitions, replicas)
        self.load = Load(cluster.addresses, topic, self.history)
        self._running = ExitStack()

    def __enter__(self) -> "Checked":
        self._running.enter_context(self.load)
        self._readers = [
            self._running.enter_context(
                Reader(name, self.cluster.addresses, self.topic, self.partitions, self.history)
            )
            for name in READERS
        ]
        self.load.wait_for_acknowledged(200)
        return self

    def __exit__(self, *_) -> None:
        self._running.close()

    def goes_on(self, count: int = 300) -> None:
        """Acknowledgements come, now."""
        self.load.wait_for_acknowledged(count)

    def verdict(self) -> None:
        self.load.finish()
        self._running.close()
        errors = [error for reader in self._readers for error in reader.errors]
        assert not errors, errors[:SHOWN_MAX]
        self.history.log = read_log(self.cluster.addresses, self.topic, self.partitions)
        found = violations(self.history)
        assert not found, f"{len(found)} violations: {found[:SHOWN_MAX]}"
        assert len(self.history.acknowledged) == len(self.history.sent)
        assert self.history.reads, "the readers saw nothing"
