"""Fixtures: clusters of brokers for a test, each with a ZooKeeper of its own."""

import re
import sys
from pathlib import Path

import pytest

# What runs a broker and ZooKeeper as processes is shared with the tests of single brokers.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

from parts.cluster import Cluster  # noqa: E402: the path is set above


@pytest.fixture
def make_cluster(tmp_path):
    """Clusters that the test starts with what it says, and need not end."""
    made: list[Cluster] = []

    def make(brokers: int = 3, **options: object) -> Cluster:
        cluster = Cluster(tmp_path / f"cluster-{len(made) + 1}", brokers, **options)
        made.append(cluster)
        return cluster.start()

    yield make
    for cluster in made:
        cluster.close()
    for cluster in made:
        cluster.assert_nothing_caught()


@pytest.fixture
def cluster(make_cluster) -> Cluster:
    """Three brokers."""
    return make_cluster()


@pytest.fixture
def topic(request) -> str:
    """A name that tells in a broker's log which test it is of."""
    return re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the end of every broker's log."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Cluster):
                for broker in value.brokers.values():
                    report.sections.append((f"log of broker {broker.id}", broker.log_tail(40)))
