"""Apache Kafka's own tools on a cluster: described, configured."""

from harness import kafka_tools

from parts.waiting import until

UNTIL_DONE_SECONDS_MAX = 60


def test_topics_are_described_with_their_replicas(cluster, topic):
    cluster.create(topic, 3)
    said = kafka_tools.output("TopicCommand", cluster.addresses, "--describe", "--topic", topic)
    lines = [line for line in said.splitlines() if "Partition:" in line]
    assert len(lines) == 3
    for line in lines:
        assert sorted(line.split("Isr:")[1].split()[0].split(",")) == ["1", "2", "3"]
    cluster.kill(cluster.follower(topic))
    cluster.wait_for_in_sync(topic, 0, 2)
    under = kafka_tools.output(
        "TopicCommand", cluster.addresses, "--describe", "--under-replicated-partitions"
    )
    assert under.count(f"Topic: {topic}") == 3


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
