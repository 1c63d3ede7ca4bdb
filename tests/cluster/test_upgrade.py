"""A cluster goes to another version, and back, broker by broker under a load; and a broker that does not know the
cluster's level stays outside. packaging/doc/upgrades.md has the policy.

The other version is the same tree, its broker built as another one (tests/plugins), or what the variable
MILLRACE_PREVIOUS names: a folder with the bin/ and lib/ of an earlier build, in `tests/run upgrade` those of the packages of an
earlier commit."""

import os
import subprocess
from pathlib import Path

import pytest
from harness.broker import PREFIX

from parts.checked import Checked
from parts.cluster import Cluster
from parts.waiting import until
from test_bad_input import refused

BUILT_BESIDE = PREFIX / "tests" / "plugins" / "previous"
PREVIOUS = Path(os.environ.get("MILLRACE_PREVIOUS", BUILT_BESIDE))
BAD_DATA = 65


def program(prefix: Path) -> Path:
    return (prefix / "bin" / "millraced").resolve()


def program_of(broker) -> Path:
    return Path(f"/proc/{broker.process.pid}/exe").resolve()


def replace(cluster: Cluster, id: int, prefix: Path) -> None:
    """As an upgrade of its package does: stopped in order, started as what is there now."""
    cluster.stop(id)
    cluster.brokers[id].prefix = prefix
    cluster.brokers[id].start()


@pytest.mark.slow
def test_all_brokers_are_replaced_in_turn_by_another_version_and_back(make_cluster, topic):
    cluster = make_cluster(prefix=PREVIOUS)
    with Checked(cluster, topic) as checked:
        for prefix in (PREFIX, PREVIOUS):
            for id in cluster.brokers:
                replace(cluster, id, prefix)
                checked.goes_on(50)
                cluster.wait_until_healed(topic)
                # Whichever of the two versions is the controller now: the others do as it says.
                cluster.create(f"{topic}-{'new' if prefix is PREFIX else 'old'}-{id}", 3)
            assert {program_of(broker) for broker in cluster.brokers.values()} == {program(prefix)}
        checked.goes_on()
        checked.verdict()
    cluster.end()


def test_the_version_that_is_built_beside_is_another_one():
    versions = {
        subprocess.run([program(prefix), "--version"], check=True, capture_output=True).stdout
        for prefix in (PREFIX, BUILT_BESIDE)
    }
    assert len(versions) == 2


@pytest.mark.slow
def test_a_broker_that_does_not_know_the_clusters_level_stays_outside(make_cluster):
    """Those that are in go on: a level is raised when all of them know it."""
    cluster = make_cluster(2)
    cluster.stop(2)
    zookeeper = cluster.zookeepers[0]
    assert '"level":1' in zookeeper.run("get /millrace/millrace/level")
    zookeeper.run('''set /millrace/millrace/level {"version":1,"level":2}''')
    code, said = refused(cluster.brokers[2])
    assert code == BAD_DATA
    assert "/millrace/level: the cluster is at level 2, and this broker knows levels 1 to 1" in said
    cluster.wait_for_brokers(1)
    zookeeper.run('''set /millrace/millrace/level {"version":1,"level":1}''')
    cluster.brokers[2].start()
    until(lambda: len(cluster.metadata().brokers) == 2, 60, "both brokers")
    cluster.end()
