"""The millrace tool against a broker: topics, produce and consume, and what it says when it
cannot."""

import base64
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import PARTITIONS
from harness.broker import PREFIX, Millrace, free_port
from harness.fleet import Java
from harness.middleman import Middleman
from harness.paths import SOURCE
from harness.records import CODECS, Record
from harness.tool import Tool, run


@pytest.fixture
def tool(broker) -> Tool:
    return Tool(broker.address)


def test_a_topic_lives(tool):
    tool.text("topic", "create", "tool-life", "--partitions", 3, "--config", "retention.ms=60000")
    names = [topic["topic"] for topic in tool.json_lines("topic", "list")[0]["topics"]]
    assert "tool-life" in names
    assert "tool-life" in tool.text("topic", "list")

    described = tool.json_lines("topic", "describe", "tool-life")[0]
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2]
    assert all(one["leader"] == one["replicas"][0] for one in described["partitions"])

    tool.text("topic", "delete", "tool-life")
    names = [topic["topic"] for topic in tool.json_lines("topic", "list")[0]["topics"]]
    assert "tool-life" not in names


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_consumed(tool, codec):
    topic = f"tool-{codec}"
    tool.text("topic", "create", topic, "--partitions", PARTITIONS)
    lines = [f"key-{n % 7}={'value ' * 50}{n}" for n in range(3000)]
    tool.text(
        *("produce", topic, "--key-separator", "=", "--compression", codec, "--header", "h=1"),
        stdin="\n".join(lines) + "\n",
    )
    records = tool.json_lines("consume", topic)
    assert sorted(f"{one['key']}={one['value']}" for one in records) == sorted(lines)
    for partition in range(PARTITIONS):
        offsets = [one["offset"] for one in records if one["partition"] == partition]
        assert offsets == list(range(len(offsets)))
    assert all(one["headers"] == [{"key": "h", "value": "1"}] for one in records)


def test_consume_starts_where_it_is_told(tool):
    tool.text("topic", "create", "tool-from", "--partitions", 1)
    tool.text("produce", "tool-from", stdin="a\nb\nc\n")
    records = tool.json_lines("consume", "tool-from")
    assert tool.text("consume", "tool-from", "--from", 1) == "b\nc\n"
    assert tool.text("consume", "tool-from", "--from", "latest") == ""
    assert tool.text("consume", "tool-from", "--count", 2) == "a\nb\n"
    assert tool.text("consume", "tool-from", "--from", f"@{records[0]['timestamp']}") == "a\nb\nc\n"
    assert tool.text("consume", "tool-from", "--from", f"@{records[2]['timestamp'] + 1000}") == ""


def test_consume_starts_at_a_time_and_before_the_end(tool):
    tool.text("topic", "create", "tool-times", "--partitions", 2, "--config", "retention.ms=-1")
    old = '{"value": "old %d", "partition": %d, "timestamp": 1000000000000}\n'
    tool.text("produce", "tool-times", "--json", stdin=old % (0, 0) + old % (1, 1))
    tool.text("produce", "tool-times", "--partition", 0, stdin="new\n")
    consume = ("consume", "tool-times", "--format", "%p:%o:%s\\n")
    assert tool.text(*consume, "--from", "1h30m") == "0:1:new\n"
    assert tool.text(*consume, "--from", "2001-09-09") == "0:0:old 0\n0:1:new\n1:0:old 1\n"
    assert tool.text(*consume, "--from", "2020-01-01T00:00:00Z") == "0:1:new\n"
    assert tool.text(*consume, "--from", "-1") == "0:1:new\n1:0:old 1\n"
    assert tool.text(*consume, "--from", "-5", "--partition", 0) == "0:0:old 0\n0:1:new\n"
    assert tool.text(*consume, "--count", 0) == ""


def test_messages_are_cut_and_printed_as_they_are_wanted(tool, tmp_path):
    tool.text("topic", "create", "tool-formats", "--partitions", 1)
    (tmp_path / "whole").write_text("two\nlines\n")
    produce = ("produce", "tool-formats")
    tool.text(*produce, "--key-separator", "\\t", "--header", "h=1", stdin="k\tv\n")
    tool.text(*produce, "--separator", ";", "--key", "same", stdin="a;b")
    tool.text(*produce, "--whole", "--file", tmp_path / "whole")
    consume = ("consume", "tool-formats")
    assert tool.text(*consume, "--headers", "--keys", "--count", 1) == "h=1\tk\tv\n"
    assert tool.text(*consume, "--format", "%k[%K]=%s[%S] ") == (
        "k[1]=v[1] same[4]=a[1] same[4]=b[1] [-1]=two\nlines\n[10] "
    )


def test_where_not_all_can_be_trimmed_nothing_is(broker, tool):
    tool.text("topic", "create", "tool-trim", "--partitions", 2)
    tool.text("produce", "tool-trim", "--partition", 0, stdin="a\nb\nc\n")
    refused = run("-b", broker.address, "topic", "trim", "tool-trim", "--before", 2)
    assert refused.code == 64 and "tool-trim-1 ends at offset 0; nothing was removed" in refused.errors
    assert tool.text("consume", "tool-trim") == "a\nb\nc\n"
    tool.text("topic", "trim", "tool-trim", "--before", 2, "--partition", 0)
    assert tool.text("consume", "tool-trim") == "c\n"
    refused = run("-b", broker.address, "topic", "trim", "tool-trim", "--before", 2, "--partition", 2)
    assert refused.code == 64 and "topic 'tool-trim' has partitions 0 to 1" in refused.errors
    refused = run("-b", broker.address, "consume", "tool-trim", "--from", 1)
    assert refused.code == 64 and "tool-trim-0 begins at offset 2 and ends at 3" in refused.errors


def test_what_is_sent_in_front_of_a_mistake_is_told(broker, tool):
    tool.text("topic", "create", "tool-mistake", "--partitions", 1)
    produce = ("-b", broker.address, "produce", "tool-mistake")
    refused = run(*produce, "--json", stdin='{"value": "a"}\n{"value": "b"}\n{"valu": "c"}\n')
    assert refused.code == 64 and refused.errors.endswith("; 2 messages were acknowledged\n")
    assert tool.text("consume", "tool-mistake") == "a\nb\n"
    refused = run(*produce, "--whole", stdin="x" * 3_000_000)
    assert "; 0 messages were acknowledged, others that were read may be lost" in refused.errors


def test_what_is_no_json_is_told_as_such(broker, tool):
    tool.text("topic", "create", "tool-no-json", "--partitions", 1)
    for line in ('{"value": "\\ud800"}', '{"value": "a"', "value"):
        refused = run("-b", broker.address, "produce", "tool-no-json", "--json", stdin=f"{line}\n")
        assert refused.code == 64 and "this is no JSON: " in refused.errors, line
    other = run("-b", broker.address, "produce", "tool-no-json", "--json", stdin="[1]\n")
    assert "expected an object" in other.errors and "no JSON" not in other.errors


REQUEST_BYTES_MAX = 100 << 20


def test_a_message_that_no_request_has_room_for_is_sent_once(broker, tool):
    """The broker ends the connection. Sent again, it would do so again."""
    tool.text("topic", "create", "tool-huge", "--partitions", 1)
    refused = run("-b", broker.address, "produce", "tool-huge", "--whole", stdin="x" * REQUEST_BYTES_MAX)
    assert refused.code == 64 and "waiting" not in refused.errors
    assert "tool-huge-0: " in refused.errors and "socket.request.max.bytes says more" in refused.errors
    assert "; 0 messages were acknowledged" in refused.errors
    assert tool.text("consume", "tool-huge") == ""


@pytest.mark.millrace
def test_what_is_the_clusters_own_is_not_deleted_by_a_slip(own_broker):
    tool = Tool(own_broker.address)
    tool.text("topic", "create", "orders")
    tool.text("group", "reset", "own", "--to-latest", "--topic", "orders", "--execute")
    refused = run("-b", tool.address, "topic", "delete", "__consumer_offsets")
    assert refused.code == 1 and "is the cluster's own" in refused.errors and "--force" in refused.errors
    assert "__consumer_offsets" in tool.text("topic", "list")
    tool.text("topic", "delete", "__consumer_offsets", "--force")
    slip = run("-b", tool.address, "topic", "describe", "ordres")
    assert "nearest known: orders" in slip.errors


def test_a_tombstone_and_bytes_that_are_no_text(tool):
    tool.text("topic", "create", "tool-null", "--partitions", 1)
    tool.text("produce", "tool-null", "--key-separator", "=", "--null-empty", stdin="k=\n")
    record = tool.json_lines("consume", "tool-null")[0]
    assert (record["key"], record["value"]) == ("k", None)


def test_keys_go_where_the_java_client_sends_them(broker, tool):
    keys = [random.Random(n).randbytes(n % 40 + 1).hex() for n in range(500)]
    client = Java(broker.address)
    try:
        client.create_topic("java-keys", 7)
        client.produce("java-keys", [Record(key.encode(), b"") for key in keys])
        theirs = {
            record.key.decode(): partition
            for partition in range(7)
            for record in client.read("java-keys", partition)
        }
    finally:
        client.close()
    tool.text("topic", "create", "tool-keys", "--partitions", 7)
    lines = "".join(f"{key}=\n" for key in keys)
    tool.text("produce", "tool-keys", "--key-separator", "=", stdin=lines)
    ours = {one["key"]: one["partition"] for one in tool.json_lines("consume", "tool-keys")}
    assert len(theirs) == len(set(keys))
    assert ours == theirs


def columns(table: str) -> list[list[str]]:
    """The rows of a table, cut where its headings begin: what does not line up falls apart."""
    heading, *rows = table.splitlines()
    starts = [0] + [match.end() for match in re.finditer("  +", heading)]
    ends = starts[1:] + [None]
    return [
        [line[start:end].strip() for start, end in zip(starts, ends)] for line in [heading, *rows]
    ]


@pytest.mark.millrace
def test_tables_say_what_json_says(broker, tool):
    tool.text("topic", "create", "tool-tables", "--partitions", 2)
    tool.text("produce", "tool-tables", stdin="a\n" * 100)
    (described,) = tool.json_lines("log", "dirs")
    (dir_json,) = described["log_dirs"]
    of_topic = [one for one in dir_json["partitions"] if one["topic"] == "tool-tables"]
    assert len(of_topic) == 2 and sum(one["bytes"] for one in of_topic) > 100
    headings, row = columns(tool.text("log", "dirs"))
    shown = dict(zip(headings, row))
    assert shown["PATH"] == dir_json["path"] == str(broker.folder / "data")
    assert int(shown["PARTITIONS"]) == len(dir_json["partitions"])
    assert shown["ERROR"] == ""

    (cluster,) = tool.json_lines("cluster", "describe")
    assert f":{broker.port}" in json.dumps(cluster)
    assert str(broker.port) in tool.text("cluster", "describe")


@pytest.mark.millrace
def test_settings_are_changed_described_and_explained(tool):
    tool.text("topic", "create", "tool-settings", "--partitions", 1)
    tool.text("config", "set", "--topic", "tool-settings", "retention.ms=60000")
    assert "60000" in tool.text("config", "get", "--topic", "tool-settings")
    refused = run("-b", tool.address, "config", "set", "--topic", "tool-settings", "a=b")
    assert refused.code != 0 and refused.output == "" and "a" in refused.errors
    unknown = run("-b", tool.address, "config", "get", "--topic", "tool-settings", "retention.m")
    assert unknown.code == 1 and unknown.output == ""
    assert "has no setting 'retention.m'; nearest known: retention.ms" in unknown.errors
    explained = run("config", "explain", "retention.ms").output
    assert "(ms)" in explained and "604800000" in explained and "log.retention.hours" in explained
    slip = run("config", "explain", "broker.dta")
    assert slip.code == 1 and "nearest known: broker.data" in slip.errors


@pytest.mark.millrace
def test_a_broker_that_ends_meanwhile_is_said_so(own_broker):
    tool = Tool(own_broker.address)
    tool.text("topic", "create", "tool-end", "--partitions", 1)
    own_broker.kill()
    outcome = run("-b", own_broker.address, "produce", "tool-end", stdin="a\n")
    assert outcome.code == 69
    assert own_broker.address in outcome.errors
    own_broker.start()
    assert run("-b", own_broker.address, "produce", "tool-end", stdin="a\n").code == 0
    assert Tool(own_broker.address).text("consume", "tool-end") == "a\n"


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "alter", "near-order", "--partitions", 9],
        ["config", "get", "--topic", "near-order"],
        ["config", "set", "--topic", "near-order", "retention.ms=1"],
        ["config", "diff", "--topic", "near-order"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
@pytest.mark.millrace
def test_a_topic_that_is_not_there_is_told_with_the_nearest(broker, words):
    Tool(broker.address).text("topic", "create", "near-orders", "--if-not-exists")
    refused = run("-b", broker.address, *words)
    assert refused.code == 1
    assert "topic 'near-order'; nearest known: near-orders" in refused.errors


def test_a_partition_that_is_not_there_is_told_with_those_that_are(broker):
    Tool(broker.address).text("topic", "create", "near-parts", "--partitions", 2)
    refused = run("-b", broker.address, "group", "reset", "near-parts", "--to-latest", "--topic", "near-parts:0,7")
    assert refused.code == 64
    assert "--topic 'near-parts:0,7': partition 7: topic 'near-parts' has partitions 0 to 1" in refused.errors


def test_a_template_with_a_folder_in_it_is_refused(tmp_path):
    (tmp_path / "templates" / "operators" / "build").mkdir(parents=True)
    words = ("--kind", "operators", "--templates", tmp_path / "templates", "--into", tmp_path / "words")
    refused = run("plugin", "new", "words", *words)
    assert refused.code == 64 and "operators/build is a folder; a template has files alone" in refused.errors
    assert [one.name for one in tmp_path.iterdir()] == ["templates"]


@pytest.mark.millrace
def test_a_setting_that_is_not_there_is_not_taken_away(broker):
    Tool(broker.address).text("topic", "create", "near-orders", "--if-not-exists")
    words = ("--topic", "near-orders", "--unset", "retention.m")
    refused = run("-b", broker.address, "config", "set", *words)
    assert (refused.code, refused.output) == (1, "")
    assert "topic near-orders has no setting 'retention.m'; nearest known: retention.ms" in refused.errors


@pytest.mark.millrace
@pytest.mark.parametrize("of", [("--broker", 1), ("--broker-default",)], ids=lambda of: of[0])
def test_a_setting_that_no_broker_has_is_told_with_the_nearest(broker, of):
    refused = run("-b", broker.address, "config", "set", *of, "log.retention.mss=5")
    assert (refused.code, refused.output) == (64, "")
    assert "nearest known to log.retention.mss: log.retention.ms" in refused.errors


@pytest.mark.millrace
def test_a_broker_that_is_not_there_is_told_with_those_that_are(broker):
    for number in (77, "one"):
        refused = run("-b", broker.address, "config", "get", "--broker", number)
        assert refused.code == 64 and f"; there are brokers {broker.id}" in refused.errors


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["topic", "describe", "no-such"], 1, "UNKNOWN_TOPIC_OR_PARTITION: topic 'no-such'"),
        (["topic", "create", "bad name"], 64, "it has ' '; allowed are a-z, A-Z, 0-9, '.', '_' and '-'"),
        (["topic", "create", "orders😀"], 64, "it has '😀'; allowed are"),
        (["topic", "create", "x", "--config", "retention.ms=soon"], 64, "retention.ms"),
        (["topic", "create", "x", "--config", "retention.mss=1"], 64, "retention.mss: retention.ms"),
        (["topic", "create", "x", "--config", "novalue"], 64, "expected KEY=VALUE"),
        (["topic", "describe", ""], 64, '"" is no topic\'s name'),
        (["topic", "trim", "a b", "--before", "end"], 64, "it has ' '; allowed are"),
        (["topic", "create", "x", "--partitions", 0], 64, "an integer from 1 to 2147483647"),
        (["topic", "create", "x", "--replication-factor", 40_000], 64, "from 1 to 32767"),
        (["consume", "no-such"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["produce", "no-such"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["produce", "x", "--compression", "brotli"], 64, "none, gzip, snappy, lz4 or zstd"),
        (["produce", "x", "--compression", "zst"], 64, "nearest known: zstd"),
        (["produce", "x", "--file", "/no/such"], 1, "/no/such: No such file"),
        (["consume", "x", "--count", -1], 64, 'an integer, at least 0, found "-1"'),
        (["consume", "x", "--format", "%q"], 64, "%s value, %S its bytes"),
        (["consume", "x", "--from", "yesterday"], 64, "expected earliest, latest, an offset"),
        (["topic"], 64, "expected a verb: create, list"),
        (["frobnicate"], 64, "frobnicate"),
    ],
)
@pytest.mark.millrace
def test_a_mistake_is_explained(broker, words, code, said):
    outcome = run("-b", broker.address, *words)
    assert (outcome.code, outcome.output) == (code, "")
    assert said in outcome.errors


# An API, what it answers twice, where that stands in the answer, and the verb that is to come through all the same.
PASSING = {
    "a broker that has just started gives no producer ids": (22, 14, 4, "produce TOPIC"),
    "a leader that has yet to learn of a topic": (0, 3, -1, "produce TOPIC"),
    "one of another topic's id": (0, 100, -1, "produce TOPIC"),
    "a leader that is just elected": (2, 78, -1, "consume TOPIC --from latest"),
    "a reader's leader knows nothing yet": (1, 3, -1, "consume TOPIC"),
    "a reader's leader has moved": (1, 6, -1, "consume TOPIC"),
    "the first records go elsewhere": (21, 6, -9, "topic trim TOPIC --before end"),
    "a coordinator reads what groups have committed": (16, 14, 4, "group list"),
}


@pytest.fixture(scope="module")
def between(tmp_path_factory):
    """A broker that clients know by the address of one who spoils its answers."""
    folder = tmp_path_factory.mktemp("between")
    broker = Millrace(folder)
    middleman = Middleman(broker.address)
    broker.settings["transport.kafka.advertise"] = middleman.address
    try:
        broker.start()
        yield middleman
        broker.end()
    finally:
        broker.close()
        middleman.close()


@pytest.mark.millrace
@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_waited_for(between, name):
    api, code, place, verb = PASSING[name]
    tool = Tool(between.address)
    topic = f"passing-{api}-{code}-{place}"
    made = tool.json_lines("topic", "create", topic, "--partitions", 1)[0]
    tool.text("produce", topic, stdin="a\n")
    names = [topic.encode(), base64.urlsafe_b64decode(made["topic_id"] + "==")]
    between.spoil(api, 2, code, place, names)

    sends = verb.startswith("produce")
    words = verb.replace("TOPIC", topic).split()
    done = run("-b", between.address, *words, stdin="b\n" if sends else "")
    assert done.code == 0, done.errors
    assert between.spoiled[api] == 2
    if sends:
        assert tool.text("consume", topic) == "a\nb\n", "once, however often it was sent"


@pytest.mark.millrace
def test_a_broker_is_asked_over_ipv6(tmp_path):
    broker = Millrace(tmp_path)
    broker.address = f"[::1]:{broker.port}"
    broker.settings["transport.http.listen"] = "[::1]:0"
    try:
        broker.start()
        tool = Tool(broker.address)
        tool.text("topic", "create", "six", "--partitions", 1)
        tool.text("produce", "six", stdin="a\n")
        assert tool.text("consume", "six") == "a\n"
        assert broker.address in tool.text("cluster", "brokers")
        assert run("stream", "--admin", broker.http_address(), "list").code == 0
        bare = run("-b", f"::1:{broker.port}", "topic", "list")
        assert bare.code == 64 and "HOST:PORT, for example 127.0.0.1:9092 or [::1]:9092" in bare.errors
        broker.end()
    finally:
        broker.close()


def test_a_limit_of_ones_own_is_not_the_brokers_fault(broker):
    words = [PREFIX / "bin" / "millrace", "-b", broker.address, "topic", "list"]
    said = []
    while True:  # until it has as many as it needs
        limit = f'ulimit -n {len(said) + 4}; exec "$@"'
        few = subprocess.run(["sh", "-c", limit, "sh", *words], capture_output=True, text=True)
        if few.returncode == 0:
            break
        said.append(few.stderr)
    # With the last one for the connection alone is there none.
    assert "Too many open files" in said[-1] and "ulimit -n" in said[-1]


def test_no_broker_there():
    outcome = run("-b", "127.0.0.1:1", "topic", "list")
    assert outcome.code == 69
    assert "no broker at 127.0.0.1:1" in outcome.errors


@pytest.mark.millrace
def test_plugins_are_listed_shown_and_checked(tmp_path):
    listed = json.loads(run("-o", "json", "plugin", "list").output)["plugins"]
    names = {one["plugin"]: one for one in listed}
    assert {"storage/filelog", "storage/memory", "transport/kafka", "compression/zstd"} <= set(names)
    assert all(one["state"] == "ok" for one in listed)
    abi = json.loads(run("-o", "json", "plugin", "show", "transport/kafka").output)["abi"]
    assert {one["abi"] for one in listed} == {abi}
    assert {one["package"] for one in listed} == {None}, "what was built here is of no package"

    shown = json.loads(run("-o", "json", "plugin", "show", "transport/kafka").output)
    assert shown["id"] == "org.millrace.transport.kafka"
    assert "listen" in [option["name"] for option in shown["options"]]
    assert "listen" in run("plugin", "show", "transport/kafka").output

    assert run("plugin", "check", names["storage/memory"]["path"]).code == 0
    bad = tmp_path / "bad.so"
    bad.write_text("not a plugin")
    refused = run("plugin", "check", bad)
    assert refused.code == 65
    assert "not an ELF file" in refused.errors and str(bad) in refused.errors

    # What somebody may have meant.
    path = names["storage/memory"]["path"]
    for plugin, said in (
        (path.removesuffix(".so"), f"{path} is there"),
        ("memory", "there is storage/memory"),
        ("storages/memori", "nearest known: memory"),
        ("nowhere/x", "there is neither nowhere/x nor nowhere/x.so"),
        (tmp_path, f"{tmp_path} is a folder; expected KIND/NAME"),
        ("/dev/null", "/dev/null is no regular file; expected KIND/NAME"),
    ):
        assert said in run("plugin", "check", plugin).errors, plugin


@pytest.mark.millrace
def test_the_list_of_plugins_says_what_a_broker_uses_and_why_one_is_refused(broker, tmp_path):
    folder = tmp_path / "plugins" / "operators"
    folder.mkdir(parents=True)
    (folder / "hurt.so").write_bytes(b"\x7fELF, and no more")
    words = ("plugin", "--path", folder.parent, "list", "--admin", broker.http_address())
    listed = json.loads(run("-o", "json", *words).output)
    assert listed["broker"] == broker.http_address()
    uses = {one["plugin"]: [use["table"] for use in one["uses"]] for one in listed["plugins"]}
    assert uses["transport/kafka"] == ["transport.kafka"]
    assert uses["storage/filelog"] == ["storage"]
    assert uses["storage/memory"] == []
    kafka = next(one for one in listed["plugins"] if one["plugin"] == "transport/kafka")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", kafka["uses"][0]["since"])
    hurt = next(one for one in listed["plugins"] if one["plugin"] == "operators/hurt")
    assert hurt["state"] == "refused" and str(folder / "hurt.so") in hurt["reason"]
    shown = run(*words).output
    assert "[transport.kafka]" in shown and "own build" in shown
    assert f"refused: {folder}/hurt.so: " in shown
    alone = run("plugin", "list", "--admin", "127.0.0.1:1")
    assert alone.code == 0 and "USED BY is not known: no broker at 127.0.0.1:1" in alone.output


CMAKE = """#!/bin/sh
pwd
"""


@pytest.mark.parametrize(
    "name", ["plain", "two words", "a$(touch oops)'s \\ `\"*", "-é\x1b[31m", "\x85'", "long " + "x" * 240]
)
def test_what_a_new_plugin_is_built_with_can_be_copied_into_a_shell(tmp_path, name):
    words = ("--kind", "operators", "--templates", SOURCE / "sdk" / "template", "--into", tmp_path / name)
    made = run("plugin", "new", "words", *words)
    assert made.code == 0, made.errors
    assert "\x1b" not in made.output
    if re.fullmatch(r"[\w ]+", name):
        assert f"made {tmp_path / name}\n" in made.output
        assert f"plugins.path has {tmp_path / name}/build/plugins.\n" in made.output
    (command,) = re.findall(r"^  (\(cd .* cmake --workflow .*\))$", made.output, re.MULTILINE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cmake").write_text(CMAKE)
    (tmp_path / "bin" / "cmake").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for shell in ("bash", "zsh"):
        done = subprocess.run(
            [shell, "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / name}\n"), done.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"bin", name}


class Configured(Millrace):
    """By a file, which a reload reads again."""

    def __init__(self, folder: Path, text: str):
        super().__init__(folder)
        self.file = folder / "millrace.toml"
        self.file.write_text(text)

    def command(self) -> list[str]:
        return [*super().command(), "--config", str(self.file)]

    def reload(self, text: str) -> None:
        self.file.write_text(text)
        self.process.send_signal(signal.SIGHUP)


@pytest.mark.millrace
def test_the_list_of_plugins_follows_what_a_reload_takes_over(tmp_path):
    dropped = tmp_path / "plugins" / "compression" / "brotli.so"
    dropped.parent.mkdir(parents=True)
    start = f'[plugins]\npath = ["{tmp_path}/plugins"]\n[compression]\nplugins = ["gzip"'
    second = f'[transport.second]\nplugin = "kafka"\nlisten = "127.0.0.1:{free_port()}"\n'
    broker = Configured(tmp_path / "broker", f"{start}]\n")

    def since(table: str) -> str:
        words = ("plugin", "list", "--admin", broker.http_address())
        found = json.loads(run("-o", "json", *words).output)["plugins"]
        return next(use["since"] for one in found for use in one["uses"] if use["table"] == table)

    def listed() -> dict[str, tuple[str, list[str]]]:
        words = ("plugin", "--path", tmp_path / "plugins", "list", "--admin", broker.http_address())
        found = json.loads(run("-o", "json", *words).output)["plugins"]
        return {one["plugin"]: (one["state"], [use["table"] for use in one["uses"]]) for one in found}

    try:
        broker.start()
        before = listed()
        assert before["compression/gzip"] == ("ok", ["compression.gzip"])
        assert before["compression/zstd"] == ("ok", [])

        dropped.write_bytes(b"no plugin")
        broker.reload(f'{start}, "zstd", "brotli"]\n{second}')
        broker.wait_for_log_line("nothing was changed", f"{dropped}: not an ELF file")
        assert listed() == {**before, "compression/brotli": ("refused", [])}

        begun = since("transport.kafka")
        while time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) <= begun:
            pass  # it tells whole seconds
        broker.reload(f'{start}, "zstd"]\n{second}')
        broker.wait_for_log_line("SIGHUP: done", "plugin transport/second: started")
        assert since("transport.kafka") == begun < since("transport.second")
        taken = listed()
        assert taken["compression/zstd"] == ("ok", ["compression.zstd"])
        assert taken["compression/brotli"] == ("refused", [])
        assert sorted(taken["transport/kafka"][1]) == ["transport.kafka", "transport.second"]

        broker.reload(f"{start}]\n")
        broker.wait_for_log_line("SIGHUP: done", "transport second: ended")
        after = listed()
        assert after["transport/kafka"][1] == ["transport.kafka"]
        assert after["compression/zstd"][1] == ["compression.zstd"], "until the next start"
        broker.end()
    finally:
        broker.close()


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["topik"],
            ["millrace: unknown verb topik; nearest known: topic; verbs are topic, group, ", "See millrace --help"],
        ),
        (
            ["topic", "crate", "x"],
            ["millrace topic: unknown verb crate; nearest known: create; ", "See millrace topic --help"],
        ),
        (["topic"], ["millrace topic: expected a verb: create, "]),
        (
            ["topic", "create"],
            ["millrace topic create: NAME is required", "See millrace topic create --help"],
        ),
        (
            ["topic", "create", "x", "--partitions", "zero"],
            ['--partitions: expected an integer from 1 to 2147483647, found "zero"'],
        ),
        (
            ["produce", "x", "--compresion", "gzip"],
            [
                "unknown option --compresion; nearest known: --compression; options are ",
                "--compression, --version, --bootstrap, --output\n",
            ],
        ),
        (["topic", "list", "x"], ['millrace topic list: "x" is one argument too many']),
        (["-o", "yaml", "topic", "list"], ['--output: expected table or json, found "yaml"']),
        (["config", "set", "a=b"], ["millrace config set: expected one of --topic, --broker, --group, "]),
        (["config", "get", "--topic", "x", "--broker", "1"], ["config get: expected just one of --topic, "]),
        (["config", "set", "--group", "", "a=b"], ["--group: an empty value is no name"]),
        (["config", "set", "--group", "x", "a=1", "--unset", "a"], ["'a' is changed twice; name each setting once"]),
        (["config", "get", "--broker", ""], ["--broker: an empty value is no name"]),
        (["group", "describe", ""], ["NAME: an empty value is no name"]),
        (["group", "delete", "", "--execute"], ["NAME: an empty value is no name"]),
        (["group", "reset", "", "--to-latest"], ["NAME: an empty value is no name"]),
        (["group", "reset", "  ", "--to-latest"], ["NAME: a value of spaces alone is no name"]),
        (["aggregate", "replace", "ledger", ""], ["PLUGIN_FILE: an empty value is no name"]),
        (["-b", "other:9092", "stream", "list"], ["millrace stream asks the admin API", "--admin HOST:PORT"]),
        (["-b", "other:9092", "aggregate", "list"], ["millrace aggregate asks the admin API"]),
        (["produce", "x", "--separator", ""], ["an empty text ends no message; --whole makes one of all"]),
        (["produce", "x", "--key-separator", ""], ["an empty text divides nothing"]),
        (["plugin", "new", "x", "--kind", ""], ["--kind: an empty value is no name"]),
        (["plugin", "new", "x", "--kind", "operators", "--into", ""], ["--into: an empty value is no name"]),
        (["plugin", "--path", "/no/such", "list"], ["there is no folder '/no/such'; expected one with KIND/NAME.so"]),
        (["x" * 30_000], ["millrace: unknown verb xxx", "xxx... (30000 bytes)"]),
        (["topic", "create", "x", "--partitions", "9" * 30_000], ['found "999', '999... (30000 bytes)"']),
    ],
)
def test_wrong_usage_is_told_with_what_would_be_right(words, said):
    refused = run(*words)
    assert refused.code == 64
    assert len(refused.errors) < 2000
    for expected in said:
        assert expected in refused.errors, refused.errors


@pytest.mark.parametrize(
    "words",
    [
        ["config", "explain", "x" * 30_000],
        ["-b", "x" * 30_000 + ":1", "topic", "list"],
        ["stream", "--admin", "x" * 30_000, "describe", "a"],
        ["plugin", "check", "/" + "x" * 30_000],
    ],
    ids=lambda words: words[0].strip("-"),
)
def test_what_is_very_long_is_not_said_in_full(words):
    refused = run(*words)
    assert refused.code != 0 and len(refused.errors) < 5000


def test_help_says_what_each_takes():
    shown = run("--help")
    assert shown.code == 0
    assert "--output FORMAT=table" in shown.output and "table, or json" in shown.output
    assert "->" not in shown.output
