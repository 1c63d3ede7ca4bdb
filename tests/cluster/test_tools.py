"""Apache Kafka's own tools on a cluster: described, moved, elected, configured; and ours, while leaders change."""

import json
import subprocess

from harness import kafka_tools
from harness.broker import PREFIX
from harness.tool import Tool

from parts.checked import Checked
from parts.waiting import until

UNTIL_DONE_SECONDS_MAX = 60

LOAD_MESSAGES = 1500
"""Three seconds of them; the leader is killed within."""


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
