"""The command line tool, whichever broker it is given."""

from harness.tool import Tool


def test_topics_are_changed_through_any_broker(cluster):
    for id in (1, 2, 3):
        tool = Tool(cluster.brokers[id].address)
        name = f"through-{id}"
        tool.text("topic", "create", name, "--partitions", 2, "--replication-factor", 3)
        tool.text("topic", "alter", name, "--partitions", 4)
        assert len(cluster.states(name)) == 4
        tool.text("topic", "delete", name)
        assert name not in tool.text("topic", "list")
