"""What our tool prints for programs, against what packaging/doc/json.md says of it."""

import json

import pytest

from harness.json_doc import differences, shapes
from harness.paths import SOURCE
from harness.tool import Tool, run

pytestmark = pytest.mark.millrace

ELSEWHERE = {
    "stream describe", "stream start", "stream stop", "stream delete", "stream replace",
    "aggregate replace", "log repair",
}  # fmt: skip
"""Need a stream, an aggregate or a broker that is stopped: test_streams.py, test_aggregates.py, test_log_tool.py."""


@pytest.fixture(scope="module")
def printed(broker, tmp_path_factory) -> dict[str, list[dict]]:
    """What each verb has printed, once or more."""
    found: dict[str, list[dict]] = {}

    def ask(verb: str, *words: object, stdin: str = "") -> None:
        asked = run("-b", broker.address, "-o", "json", *verb.split(), *words, stdin=stdin)
        assert asked.code == 0, (verb, asked.errors)
        found.setdefault(verb, []).extend(map(json.loads, asked.output.splitlines()))

    ask("topic create", "json-a", "--partitions", 2)
    ask("topic create", "json-a", "--if-not-exists")
    ask("topic list")
    ask("topic describe", "json-a")
    ask("topic alter", "json-a", "--partitions", 3)
    ask("produce", "json-a", "--key", "k", "--header", "h=1", stdin="a\nb\n")
    ask("produce", "json-a", "--json", stdin='{"value": {"hex": "ff"}, "headers": [{"key": "h"}]}\n')
    ask("consume", "json-a")
    ask("log dump", broker.folder / "data" / "json-a-0", "--all", "--records")
    ask("log verify", broker.folder / "data" / "json-a-0")
    ask("topic trim", "json-a", "--before", "end")
    for words in ((), ("--execute",)):
        ask("group reset", "json-group", "--to-earliest", "--topic", "json-a", *words)
    ask("group list")
    ask("group describe", "json-group")
    ask("group delete", "json-group")
    ask("group delete", "json-group", "--execute")
    ask("config set", "--topic", "json-a", "retention.ms=60000")
    ask("config set", "--topic", "json-a", "--unset", "retention.ms", "--dry-run")
    ask("config get", "--topic", "json-a", "--all")
    ask("config diff", "--topic", "json-a")
    ask("config explain", "compression.lz4.level")
    ask("config check", SOURCE / "configs" / "millrace.toml")
    ask("cluster describe")
    ask("cluster status")
    ask("cluster balance")
    ask("cluster drain", 1, "--cancel")
    ask("log dirs")
    for kind in ("produce", "consume", "end-to-end"):
        ask(f"bench {kind}", "--messages", 100)
    ask("plugin list", "--admin", broker.http_address())
    ask("plugin list", "--admin", "127.0.0.1:1")
    ask("plugin show", "storage/filelog")
    ask("plugin check", "storage/filelog")
    ask("stream list", "--admin", broker.http_address())
    ask("aggregate list", "--admin", broker.http_address())
    ask("doctor", *broker.command()[1:], "--admin", broker.http_address())
    ask("topic delete", "json-a")
    return found


def test_all_that_is_documented_is_tried(printed):
    assert set(printed) | ELSEWHERE | {"plugin new"} == set(shapes())


@pytest.mark.parametrize("verb", sorted(set(shapes()) - ELSEWHERE - {"plugin new"}))
def test_what_is_printed_has_the_shape_that_is_documented(printed, verb):
    assert printed[verb]
    for document in printed[verb]:
        assert differences(shapes()[verb], document) == []


def test_a_difference_is_seen():
    shape = {"a": "text", "b?": "integer", "c": [{"d": "bytes or null"}]}
    assert differences(shape, {"a": "x", "c": [{"d": None}, {"d": {"hex": "00"}}]}) == []
    assert differences(shape, {"a": 1, "b": True, "c": [{"d": 1}], "e": 1}) == [
        "$.e is not documented",
        "$.a: 1 is not text",
        "$.b: True is not integer",
        "$.c[0].d: 1 is not bytes or null",
    ]


def test_a_topic_is_copied_with_all_that_its_messages_have(broker):
    tool = Tool(broker.address)
    for name in ("json-from", "json-to"):
        tool.text("topic", "create", name, "--partitions", 2)
    lines = [
        {"key": "k", "value": None, "partition": 1, "timestamp": 1_700_000_000_000, "headers": []},
        {"key": {"hex": "ff00"}, "value": "é", "partition": 0, "timestamp": 1, "headers": []},
        {"key": None, "value": "", "partition": 0, "timestamp": 2, "headers": [{"key": "h", "value": None}]},
    ]
    tool.text("config", "alter", "--topic", "json-from", "--set", "retention.ms=-1")
    tool.text("config", "alter", "--topic", "json-to", "--set", "retention.ms=-1")
    tool.text("produce", "json-from", "--json", stdin="".join(json.dumps(one) + "\n" for one in lines))
    first = tool.text("-o", "json", "consume", "json-from")
    tool.text("produce", "json-to", "--json", stdin=first)
    copied = tool.json_lines("consume", "json-to")
    assert [one | {"topic": "json-from"} for one in copied] == [json.loads(line) for line in first.splitlines()]
    members = ("key", "value", "partition", "timestamp", "headers")
    assert [{name: one[name] for name in members} for one in copied] == [lines[1], lines[2], lines[0]]
    slip = run("-b", broker.address, "produce", "json-to", "--json", stdin='{"value": "x"}\n{"vaule": "y"}\n')
    assert slip.code == 64
    assert "message 2: " in slip.errors and "nearest known: value" in slip.errors
    assert "1 message was acknowledged" in slip.errors
