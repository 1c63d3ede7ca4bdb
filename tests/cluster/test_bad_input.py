"""What a cluster is given that cannot be right: refused by name, or named and left alone. ZooKeeper that is missing,
access lists, foreign znodes and malformed settings are in tests/clients/test_zookeeper.py, for one broker."""

import re
import subprocess

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import NewTopic
from harness import kafka_tools
from harness.zookeeper import ZooKeeper

from parts.load import consumer_of
from parts.waiting import until

CANNOT_CREATE, BAD_CONFIG = 73, 78
REFUSAL_SECONDS_MAX = 120
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT = 38, 39


def refused(broker) -> tuple[int, str]:
    """Its exit code, which must come by itself, and what it has said."""
    before = len(broker.log_text())
    with broker.log_path.open("ab") as log:
        done = subprocess.run(
            broker.command(), stdin=subprocess.DEVNULL, stderr=log, timeout=REFUSAL_SECONDS_MAX
        )
    return done.returncode, broker.log_text()[before:]


def send(cluster, topic: str, *values: str) -> None:
    producer = ck.Producer({"bootstrap.servers": cluster.addresses, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def values(cluster, topic: str, count: int) -> list[str]:
    consumer = consumer_of(cluster.addresses)
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        read = []
        until(lambda: read.extend(consumer.consume(10, 1)) or len(read) >= count, 60, "messages")
        return [message.value().decode() for message in read]
    finally:
        consumer.close()


# ---- whose data it is ----


def cluster_id(zookeeper: ZooKeeper, chroot: str) -> str:
    said = zookeeper.run(f"get {chroot}/cluster/id")
    return next(line for line in said.splitlines() if line.startswith("{")).split('"id":"')[1][:22]


def test_a_data_directory_is_its_clusters(make_cluster, topic):
    """Two chroots of one ZooKeeper are two clusters. What coordination has left in the directory is removed: the mark
    of the storage is enough."""
    cluster = make_cluster(1)
    cluster.create(topic, 1, 1)
    send(cluster, topic, "a", "b")
    one = cluster.brokers[1]
    connect = one.settings["coordination.connect"]
    assert one.stop()[0] == 0
    (zookeeper,) = cluster.zookeepers
    marked = (one.folder / "data" / "meta.properties").read_text()
    own = cluster_id(zookeeper, "/millrace")
    assert f"cluster.id={own}" in marked and "node.id=1" in marked

    other = cluster.make(1, "other")
    other.settings["coordination.connect"] = f"{zookeeper.address}/other"
    other.start()
    assert other.stop()[0] == 0
    foreign = cluster_id(zookeeper, "/other")
    assert foreign != own

    mark = one.folder / "data" / "coordination.cluster"
    kept = mark.read_bytes()
    for chroot, found in (("/other", f"this is cluster {foreign}"), ("/nobody", "no cluster yet")):
        mark.unlink(missing_ok=True)
        one.settings["coordination.connect"] = f"{zookeeper.address}{chroot}"
        code, said = refused(one)
        assert code == CANNOT_CREATE, said
        assert f"is a directory of cluster {own}" in said and found in said
        assert str(one.folder / "data") in said and "coordination.connect" in said
    assert topic not in zookeeper.run("ls /other/brokers/topics")

    one.settings["coordination.connect"] = connect
    mark.write_bytes(kept)
    one.start()
    assert values(cluster, topic, 2) == ["a", "b"]
    cluster.end()


def test_a_clusters_directory_does_not_start_alone(make_cluster, topic):
    cluster = make_cluster(1)
    cluster.create(topic, 1, 1)
    one = cluster.brokers[1]
    assert one.stop()[0] == 0
    coordination = {key: one.settings.pop(key) for key in list(one.settings) if "coordination." in key}
    code, said = refused(one)
    assert code == CANNOT_CREATE, said
    assert "is a directory of cluster" in said and "coordination.plugin" in said
    one.settings |= coordination
    one.start()
    assert topic in cluster.metadata().topics
    cluster.end()


def test_another_brokers_directory_is_refused(make_cluster, topic):
    cluster = make_cluster(2)
    cluster.stop(2)
    two = cluster.make(3, "broker-2")
    code, said = refused(two)
    assert code == CANNOT_CREATE, said
    assert "is the directory of broker 2, this is broker 3" in said
    cluster.brokers[2].start()
    cluster.end()


def test_a_second_broker_of_an_id_is_refused(make_cluster, topic):
    """Also while the first one's cluster is under way; the first does not notice."""
    cluster = make_cluster(2)
    cluster.create(topic, 1, 2)
    code, said = refused(cluster.make(2, "twin"))
    assert code == CANNOT_CREATE, said
    assert "broker.id = 2 runs already" in said
    send(cluster, topic, "a")
    assert values(cluster, topic, 1) == ["a"]
    cluster.end()


# ---- what is stored ----


@pytest.mark.sanitized
def test_damaged_znodes_are_named_and_the_cluster_goes_on(make_cluster, topic):
    """Whoever is elected next reads all: a topic, a partition's state, settings of a broker and of a topic are damaged."""
    cluster = make_cluster(3)
    (zookeeper,) = cluster.zookeepers
    for name in (topic, "bad-topic", "bad-state", "bad-configs"):
        cluster.create(name, 1, 3)
    send(cluster, topic, "a")
    zookeeper.run(
        "set /millrace/brokers/topics/bad-topic garbage",
        "set /millrace/brokers/topics/bad-state/partitions/0/state garbage",
        "set /millrace/config/topics/bad-configs garbage",
        "create /millrace/config/brokers",
        "create /millrace/config/brokers/2 garbage",
        "create /millrace/brokers/ids/somebody text",
        "create /millrace/brokers/topics/nobodys",
        "create /millrace/admin/delete_topics/never-was text",
    )
    first = cluster.controller()
    cluster.kill(first)
    survivors = [one for id, one in cluster.brokers.items() if id != first]
    until(
        lambda: any("this broker is the controller" in one.log_tail(400) for one in survivors),
        60,
        "another controller",
    )
    send(cluster, topic, "b")
    assert values(cluster, topic, 2) == ["a", "b"]
    elected = next(one for one in survivors if "this broker is the controller" in one.log_text())
    for key in (
        "/brokers/topics/bad-topic",
        "/brokers/topics/bad-state/partitions/0/state",
        "/config/topics/bad-configs",
        "/config/brokers/2",
        "/brokers/ids/somebody",
    ):
        elected.wait_for_log_line(key)
    cluster.create("after", 1, 2)
    # It reads them too when it is back.
    cluster.brokers[first].start()
    cluster.brokers[first].wait_for_log_line("a topic is left out", "bad-topic")
    cluster.wait_for_in_sync(topic, 0, 3)
    for one in cluster.brokers.values():
        one.assert_running()
        assert (one.folder / "data" / "bad-state-0").is_dir(), "nothing is removed for that"


# ---- what is asked for ----


@pytest.mark.parametrize(
    "wanted, code",
    [
        pytest.param({"replication_factor": 3}, INVALID_REPLICATION_FACTOR, id="too-many"),
        pytest.param({"replica_assignment": [[1, 9]]}, INVALID_REPLICA_ASSIGNMENT, id="nobody"),
        pytest.param({"replica_assignment": [[1, 1]]}, INVALID_REPLICA_ASSIGNMENT, id="twice"),
        pytest.param({"replica_assignment": [[1, 2], [1]]}, INVALID_REPLICA_ASSIGNMENT, id="uneven"),
    ],
)
def test_impossible_placements_are_refused(make_cluster, wanted, code, topic):
    cluster = make_cluster(2)
    partitions = len(wanted.get("replica_assignment", [0]))
    admin = cluster.admin()
    with pytest.raises(ck.KafkaException) as refusal:
        admin.create_topics([NewTopic(topic, partitions, **wanted)])[topic].result(30)
    assert refusal.value.args[0].code() == code
    assert topic not in cluster.metadata().topics
    cluster.end()


def test_an_impossible_reassignment_is_refused(make_cluster, topic, tmp_path):
    cluster = make_cluster(2)
    cluster.create(topic, 1, 2)
    before = cluster.states(topic)
    plan = tmp_path / "plan.json"
    for replicas in ([1, 9], [1, 1]):
        partition = f'{{"topic": "{topic}", "partition": 0, "replicas": {replicas}}}'
        plan.write_text(f'{{"version": 1, "partitions": [{partition}]}}')
        done = kafka_tools.run(
            "reassign.ReassignPartitionsCommand",
            cluster.addresses,
            *("--reassignment-json-file", plan, "--execute"),
        )
        assert done.returncode != 0, done.stdout
    assert cluster.states(topic) == before
    cluster.end()


# ---- how brokers reach each other ----


def test_a_transport_that_nobody_has_is_refused(make_cluster):
    cluster = make_cluster(1)
    for transport, why in (("nothing", "no [transport.nothing]"), ("http", "does not connect brokers")):
        broker = cluster.make(2)
        broker.settings["cluster.peer"] = transport
        code, said = refused(broker)
        assert code == BAD_CONFIG, said
        assert "--set cluster.peer" in said and why in said
    cluster.end()


def test_brokers_reach_each_other_by_the_transport_that_is_named(make_cluster, topic):
    """A listener of their own, beside that of the clients, who are not told of it."""
    inner = {"transport.inner.plugin": "kafka", "transport.inner.listen": "127.0.0.1:0"}
    cluster = make_cluster(2, settings={"cluster.peer": "inner", **inner})
    cluster.create(topic, 1, 2)
    send(cluster, topic, "a")
    leader = cluster.leader(topic)
    follower = cluster.brokers[3 - leader].process.pid
    said = subprocess.run(["ss", "-Htnp"], capture_output=True, text=True, check=True).stdout
    reached = {line.split()[4] for line in said.splitlines() if f"pid={follower}," in line}
    listening = cluster.brokers[leader].wait_for_log_line("listening", "transport=inner")
    assert re.search(r" address=(\S+)", listening)[1] in reached
    assert cluster.brokers[leader].address not in reached
    told = {f"{one.host}:{one.port}" for one in cluster.metadata().brokers.values()}
    assert told == {one.address for one in cluster.brokers.values()}
    cluster.end()
