"""Apache Kafka's own tools on a cluster: described, moved, elected, configured; and ours, while leaders change."""

import json
import subprocess

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from harness import kafka_tools
from harness.broker import PREFIX
from harness.tool import Tool

from parts.checked import Checked
from parts.waiting import until

UNTIL_DONE_SECONDS_MAX = 60
SLOW_RATE = 10_000
"""Bytes a second: far too few for what `fill` sends to come to an end."""

LOAD_MESSAGES = 1500
"""Three seconds of them; the leader is killed within."""


def send(cluster, topic: str, count: int, size: int = 1) -> None:
    """One in a batch."""
    running = ",".join(one.address for one in cluster.brokers.values() if one.running)
    settings = {"bootstrap.servers": running, "acks": "all", "batch.num.messages": 1}
    producer = ck.Producer(settings)
    for _ in range(count):
        producer.produce(topic, bytes(size), partition=0)
    assert producer.flush(60) == 0


def fill(cluster, topic: str) -> None:
    send(cluster, topic, 40, 100_000)


def move(cluster, plan: dict, folder, *words: str) -> str:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    tool = "reassign.ReassignPartitionsCommand"
    return kafka_tools.output(
        tool, cluster.addresses, "--reassignment-json-file", path, *words
    )


def test_topics_are_described_with_their_replicas(cluster, topic):
    cluster.create(topic, 3)
    said = kafka_tools.output("TopicCommand", cluster.addresses, "--describe", "--topic", topic)
    lines = [line for line in said.splitlines() if "Partition:" in line]
    assert len(lines) == 3
    for line in lines:
        assert sorted(line.split("Isr:")[1].split()[0].split(",")) == ["1", "2", "3"]
    cluster.kill(cluster.follower(topic))
    for partition in range(3):
        cluster.wait_for_in_sync(topic, partition, 2)
    under = kafka_tools.output(
        "TopicCommand", cluster.addresses, "--describe", "--under-replicated-partitions"
    )
    assert under.count(f"Topic: {topic}") == 3


@pytest.mark.slow
def test_topics_are_made_grown_and_deleted_through_any_broker(cluster, topic):
    def topics(id: int, *words: object) -> str:
        return kafka_tools.output("TopicCommand", cluster.brokers[id].address, *words)

    shape = ("--partitions", 3, "--replication-factor", 3)
    for id in cluster.brokers:
        name, other = f"{topic}-{id}", id % 3 + 1
        topics(id, "--create", "--topic", name, *shape)
        cluster.wait_until_healed(name)
        topics(id, "--alter", "--topic", name, "--partitions", 5)
        until(
            lambda name=name: len(cluster.states(name)) == 5, UNTIL_DONE_SECONDS_MAX, f"5 of {name}"
        )
        assert name in topics(other, "--list").split()
        topics(id, "--delete", "--topic", name)
        until(
            lambda name=name, other=other: name not in topics(other, "--list").split(),
            UNTIL_DONE_SECONDS_MAX,
            f"{name} is gone at broker {other}",
        )


def plan_after(said: str, title: str) -> dict:
    """Of what --generate prints: a line of JSON after a title."""
    return json.loads(said.split(title, 1)[1].splitlines()[1])


@pytest.mark.slow
def test_a_move_is_proposed_listed_and_cancelled(make_cluster, topic, tmp_path):
    """To brokers of the tool's choice; it is held back so that there is something to cancel."""
    cluster = make_cluster(4, defaults={"cluster.balance.enable": "false"})
    cluster.create(topic, 1, replicas=2)
    fill(cluster, topic)
    before = cluster.states(topic)[0].replicas
    others = sorted(set(cluster.brokers) - set(before))
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    tool = "reassign.ReassignPartitionsCommand"
    said = kafka_tools.output(
        *(tool, cluster.addresses, "--generate", "--topics-to-move-json-file", topics),
        *("--broker-list", ",".join(map(str, others))),
    )
    current = plan_after(said, "Current partition replica assignment")
    assert current["partitions"][0]["replicas"] == list(before)
    proposed = plan_after(said, "Proposed partition reassignment configuration")
    wanted = proposed["partitions"][0]["replicas"]
    assert sorted(wanted) == others
    move(cluster, proposed, tmp_path, "--execute", "--throttle", SLOW_RATE)
    listed = kafka_tools.output(tool, cluster.addresses, "--list")
    assert f"{topic}-0: replicas: " in listed, listed
    assert f"adding: {','.join(map(str, wanted))}." in listed, listed
    assert set(cluster.states(topic)[0].replicas) == {*before, *wanted}
    move(cluster, proposed, tmp_path, "--cancel")
    until(
        lambda: cluster.states(topic)[0].replicas == before,
        UNTIL_DONE_SECONDS_MAX,
        f"{topic}-0 where it was",
    )
    assert f"{topic}-0" not in kafka_tools.output(tool, cluster.addresses, "--list")
    cluster.wait_until_healed(topic)
    for id in others:
        data = cluster.brokers[id].folder / "data"
        until(
            lambda data=data: not list(data.glob(f"{topic}-*")), UNTIL_DONE_SECONDS_MAX, "no log left"
        )
    cluster.end()


@pytest.mark.slow
def test_an_unclean_leader_is_elected_when_asked_for(make_cluster, topic):
    """Nobody who was not in sync leads by itself. What that costs is told by offsets."""
    cluster = make_cluster(defaults={"min.insync.replicas": 1})
    cluster.create(topic, 1, replicas=2)
    first, other = (cluster.leader(topic), cluster.follower(topic))
    third = next(id for id in cluster.brokers if id not in (first, other))
    send(cluster, topic, 5)
    cluster.kill(other)
    cluster.wait_for_in_sync(topic, 0, 1)
    send(cluster, topic, 7)
    cluster.kill(first)
    cluster.brokers[other].start()
    until(
        lambda: cluster.metadata(topic, id=third).topics[topic].partitions[0].leader == -1,
        UNTIL_DONE_SECONDS_MAX,
        "nobody leads",
    )
    address = f"{cluster.brokers[other].address},{cluster.brokers[third].address}"
    words = ("--topic", topic, "--partition", 0, "--election-type")
    refused = kafka_tools.run("LeaderElectionCommand", address, *words, "preferred")
    assert refused.returncode != 0 or "error" in (refused.stdout + refused.stderr).lower()
    assert cluster.metadata(topic, id=third).topics[topic].partitions[0].leader == -1
    kafka_tools.output("LeaderElectionCommand", address, *words, "unclean")
    until(
        lambda: cluster.metadata(topic, id=third).topics[topic].partitions[0].leader == other,
        UNTIL_DONE_SECONDS_MAX,
        f"broker {other} leads",
    )
    cluster.brokers[other].wait_for_log_line("elected as leader without being in sync", "from=5")
    send(cluster, topic, 1)
    cluster.brokers[first].start()
    cluster.brokers[first].wait_for_log_line("cut the tail of a log", "from=5", "to=11")
    cluster.wait_until_healed(topic)
    assert cluster.bounds(topic, 0) == (0, 6)
    cluster.end()


def test_replicas_are_moved_under_a_load(make_cluster, topic, tmp_path):
    """To a fourth broker, while messages flow; then what is asked for holds, and no reassignment runs."""
    cluster = make_cluster(4)
    with Checked(cluster, topic) as checked:
        replicas = cluster.states(topic)[0].replicas
        (new,) = set(cluster.brokers) - set(replicas)
        wanted = [new, *replicas[:2]]
        plan = {
            "version": 1,
            "partitions": [{"topic": topic, "partition": 0, "replicas": wanted}],
        }
        move(cluster, plan, tmp_path, "--execute")
        until(
            lambda: list(cluster.states(topic)[0].replicas) == wanted,
            UNTIL_DONE_SECONDS_MAX,
            f"{topic}-0 on {wanted}",
        )
        cluster.wait_until_healed(topic)
        said = move(cluster, plan, tmp_path, "--verify")
        assert "is completed" in said or "is complete" in said, said
        checked.goes_on()
        checked.verdict()
    cluster.end()


def test_preferred_leaders_are_elected(cluster, topic):
    cluster.create(topic, 3)
    preferred = {p: state.replicas[0] for p, state in cluster.states(topic).items()}
    down = preferred[0]
    cluster.stop(down)
    cluster.leader(topic, 0, other_than=down)
    cluster.brokers[down].start()
    cluster.wait_until_healed(topic)
    kafka_tools.output(
        "LeaderElectionCommand",
        cluster.addresses,
        "--election-type",
        "preferred",
        "--all-topic-partitions",
    )
    until(
        lambda: {p: state.leader for p, state in cluster.states(topic).items()} == preferred,
        UNTIL_DONE_SECONDS_MAX,
        "every partition led by the first of its replicas",
    )


def test_configs_reach_every_broker(cluster, topic):
    cluster.create(topic, 1)
    kafka_tools.output(
        "ConfigCommand",
        cluster.addresses,
        *("--alter", "--entity-type", "topics", "--entity-name", topic),
        *("--add-config", "retention.ms=123456"),
    )
    for broker in cluster.brokers.values():

        def told(address=broker.address) -> bool:
            said = kafka_tools.output(
                "ConfigCommand",
                address,
                *("--describe", "--entity-type", "topics", "--entity-name", topic),
            )
            return "retention.ms=123456" in said

        until(told, UNTIL_DONE_SECONDS_MAX, f"broker {broker.id} tells the setting")


@pytest.mark.slow
@pytest.mark.parametrize(
    "entity", [("--entity-default",), ("--entity-name", 2)], ids=["of-all-brokers", "of-one-broker"]
)
def test_settings_of_brokers_are_told_by_every_broker(cluster, topic, entity):
    """... and count there: how long a topic keeps what it has."""
    of_brokers = ("--entity-type", "brokers", *entity)
    setting = "log.retention.ms=123456"
    change = ("--alter", *of_brokers, "--add-config", setting)
    kafka_tools.output("ConfigCommand", cluster.brokers[1].address, *change)
    for broker in cluster.brokers.values():

        def told(address=broker.address) -> bool:
            return setting in kafka_tools.output("ConfigCommand", address, "--describe", *of_brokers)

        until(told, UNTIL_DONE_SECONDS_MAX, f"broker {broker.id} tells the setting")
    at = "log.retention.ms"
    for id, broker in cluster.brokers.items():
        resource = ConfigResource(ConfigResource.Type.BROKER, str(id))
        admin = AdminClient({"bootstrap.servers": broker.address})
        found = admin.describe_configs([resource])[resource].result(60)[at].value
        assert (found == "123456") == (id == 2 or len(entity) == 1), (id, found)
    kafka_tools.output(
        *("ConfigCommand", cluster.brokers[3].address, "--alter", *of_brokers),
        *("--delete-config", at),
    )
    for broker in cluster.brokers.values():

        def gone(address=broker.address) -> bool:
            said = kafka_tools.output("ConfigCommand", address, "--describe", *of_brokers)
            return setting not in said

        until(gone, UNTIL_DONE_SECONDS_MAX, f"broker {broker.id} has forgotten the setting")


def test_our_own_tool_goes_on_while_leaders_change(make_cluster, topic):
    """Who sends and who reads asked first the very broker that is killed; each message is stored once, whoever
    sends it: a load that is measured too."""
    cluster = make_cluster(3)
    cluster.create(topic, 1)
    loaded = f"{topic}-loaded"
    cluster.create(loaded, 3)
    old = cluster.leader(topic, 0)
    tool = [PREFIX / "bin" / "millrace", "-b", cluster.brokers[old].address]
    load = ["--topic", loaded, "--rate", "500", "--messages", str(LOAD_MESSAGES), "--size", "100"]
    with (
        subprocess.Popen(
            [*tool, "-o", "json", "bench", "end-to-end", *load, "--connections", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as bench,
        subprocess.Popen(
            [*tool, "produce", topic], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as sender,
        subprocess.Popen(
            [*tool, "consume", topic, "--follow", "--count", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as reader,
    ):
        sender.stdin.write("before\n")
        sender.stdin.flush()
        assert reader.stdout.readline() == "before\n"
        until(lambda: cluster.bounds(loaded, 0)[1] > 0, UNTIL_DONE_SECONDS_MAX, "the load")
        cluster.kill(old)
        sender.stdin.write("after\n")
        sender.stdin.flush()
        assert reader.stdout.readline() == "after\n"
        _, said = sender.communicate(timeout=UNTIL_DONE_SECONDS_MAX)
        assert sender.returncode == 0, said
        assert f"a leader of {topic}-0" in said
        assert reader.wait(UNTIL_DONE_SECONDS_MAX) == 0
        measured, said = bench.communicate(timeout=UNTIL_DONE_SECONDS_MAX)
        assert bench.returncode == 0, said
        measured = json.loads(measured)
        assert (measured["messages"], measured["unread"]) == (LOAD_MESSAGES, 0)
        assert measured["waits"] > 0 and said.count("waiting up to") == 1
    assert Tool(cluster.addresses).text("consume", topic) == "before\nafter\n"
    read = Tool(cluster.addresses).json_lines("bench", "consume", "--topic", loaded)
    assert read[0]["messages"] == LOAD_MESSAGES
    cluster.end()
