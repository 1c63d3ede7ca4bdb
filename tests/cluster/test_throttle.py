"""Replicas that move keep to the rate that Kafka's tool sets, and the tool takes it back."""

import json
import re
import time
import urllib.request

import confluent_kafka as ck
from harness import kafka_tools

from parts.waiting import until

MESSAGE = bytes(range(256)) * 256
MESSAGES = 384
RATE = 3_000_000
"""Bytes a second: eight seconds for what is in the topic."""
MOVE_SECONDS_MAX = 60


def fill(cluster, topic: str) -> int:
    """Bytes in the topic's one partition."""
    producer = ck.Producer({"bootstrap.servers": cluster.addresses, "acks": "all"})
    for _ in range(MESSAGES):
        producer.produce(topic, MESSAGE, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
    return MESSAGES * len(MESSAGE)


def throttled_bytes(broker, limit: str) -> int:
    with urllib.request.urlopen(f"http://{broker.http_address()}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    name = "millrace_replication_throttled_bytes_total"
    return int(re.search(rf'{name}\{{limit="{limit}"\}} (\d+)', text)[1])


def test_a_move_keeps_to_the_rate_that_the_tool_sets(make_cluster, topic, tmp_path):
    cluster = make_cluster(4, defaults={"cluster.balance.enable": "false"})
    cluster.create(topic, 1)
    stored = fill(cluster, topic)
    before = cluster.states(topic)[0].replicas
    (new,) = set(cluster.brokers) - set(before)
    wanted = [*before[:2], new]
    plan = tmp_path / "plan.json"
    partition = {"topic": topic, "partition": 0, "replicas": wanted}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    tool = "reassign.ReassignPartitionsCommand"
    file = ("--reassignment-json-file", plan)

    started = time.monotonic()
    kafka_tools.output(tool, cluster.addresses, *file, "--execute", "--throttle", RATE)
    until(
        lambda: list(cluster.states(topic)[0].replicas) == wanted,
        MOVE_SECONDS_MAX,
        f"{topic}-0 on {wanted}",
    )
    took = time.monotonic() - started
    assert took > stored / RATE * 0.9, "it has not been held back"
    assert throttled_bytes(cluster.brokers[new], "follower") >= stored
    assert throttled_bytes(cluster.brokers[before[0]], "leader") >= stored

    said = kafka_tools.output(tool, cluster.addresses, *file, "--verify")
    assert "is complete" in said, said
    for entity, name in (("brokers", new), ("topics", topic)):
        told = kafka_tools.output(
            "ConfigCommand",
            cluster.addresses,
            *("--describe", "--entity-type", entity, "--entity-name", name),
        )
        assert "throttled" not in told, "the tool has taken it back"
    cluster.end()
