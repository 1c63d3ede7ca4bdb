"""The command line tool, whichever broker it is given."""

from harness.tool import Tool, run

from parts.cluster import HEAL_SECONDS_MAX
from parts.waiting import until

SESSION_MS = 6000
"""The tool has begun to ask before that is over."""


def wait_for_partitions(cluster, topic: str, count: int) -> None:
    until(lambda: len(cluster.states(topic)) == count, HEAL_SECONDS_MAX, f"{count} of {topic}")


def test_topics_are_changed_through_any_broker(cluster):
    for id in (1, 2, 3):
        tool = Tool(cluster.brokers[id].address)
        name = f"through-{id}"
        tool.text("topic", "create", name, "--partitions", 2, "--replication-factor", 3)
        tool.text("topic", "alter", name, "--partitions", 4)
        wait_for_partitions(cluster, name, 4)
        tool.text("topic", "delete", name)
        assert name not in tool.text("topic", "list")


def test_the_tool_waits_for_another_controller(make_cluster):
    cluster = make_cluster(session_ms=SESSION_MS)
    controller = cluster.controller()
    other = next(id for id in cluster.brokers if id != controller)
    cluster.kill(controller)
    address = cluster.brokers[other].address
    words = ("topic", "create", "made-meanwhile", "--partitions", 2, "--replication-factor", 2)
    made = run("--bootstrap", address, *words)
    assert made.code == 0, made.errors
    assert "waiting up to 30 s for a controller that answers" in made.errors
    wait_for_partitions(cluster, "made-meanwhile", 2)


def test_only_brokers_that_are_there_are_drained(cluster):
    address = cluster.brokers[1].address
    for words in (("cluster", "drain", 99), ("cluster", "drain", 99, "--cancel")):
        unknown = run("--bootstrap", address, *words)
        assert unknown.code != 0 and "there is no broker 99; there are 1, 2, 3" in unknown.errors
    no_number = run("--bootstrap", address, "cluster", "drain", "abc")
    assert "'abc' is no number of a broker" in no_number.errors and len(no_number.errors) < 300
    change = ("config", "alter", "--all-brokers", "--set", "cluster.drain.brokers=2,99")
    by_setting = run("--bootstrap", address, *change)
    assert by_setting.code != 0 and "there is no broker 99; there are 1, 2, 3" in by_setting.errors
    change = ("config", "alter", "--broker", 1, "--set", "cluster.balance.enable=true")
    for_one = run("--bootstrap", address, *change)
    assert for_one.code != 0 and "millrace config set --broker-default" in for_one.errors
