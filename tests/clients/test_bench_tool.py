"""`millrace bench`: what it counts is what was sent and read, and no topic is left behind."""

import json
import signal
import subprocess
import time

import pytest

from conftest import PARTITIONS
from harness.broker import PREFIX, free_port
from harness.tool import Tool, run

WAIT_SECONDS_MAX = 60


@pytest.fixture
def tool(broker) -> Tool:
    return Tool(broker.address)


def made_topics(tool: Tool) -> list[str]:
    (answer,) = tool.json_lines("topic", "list")
    return [one["topic"] for one in answer["topics"] if one["topic"].startswith("millrace-bench-")]


def bench(tool: Tool, *words: object) -> dict:
    (result,) = tool.json_lines("bench", *words)
    times = result["latency_us"]
    assert 0 < times["p50"] <= times["p99"] <= times["p99_9"] <= times["max"] * 1.01
    assert result["messages_per_second"] > 0 and result["bytes_per_second"] > 0
    assert result["latency_of"] and not result["interrupted"]
    return result


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_what_was_sent_is_there(tool, codec):
    topic = f"bench-sent-{codec}"
    tool.text("topic", "create", topic, "--partitions", PARTITIONS)
    sent = bench(
        *(tool, "produce", "--topic", topic, "--messages", 5000, "--size", 100),
        *("--codec", codec, "--connections", 2),
    )
    assert (sent["messages"], sent["bytes"]) == (5000, 500_000)
    assert sent["topic"] == topic and sent["partitions"] == PARTITIONS
    read = bench(tool, "consume", "--topic", topic, "--connections", 2)
    assert (read["messages"], read["bytes"]) == (5000, 500_000)


def test_a_topic_that_was_made_is_removed(tool):
    assert bench(tool, "produce", "--messages", 1000, "--size", 50)["topic_made"]
    assert bench(tool, "consume", "--messages", 1000, "--size", 50)["messages"] == 1000
    assert made_topics(tool) == []


def test_a_rate_is_kept(tool):
    result = bench(tool, "produce", "--rate", 400, "--messages", 200, "--acks", "1")
    assert result["messages"] == 200
    # The last one is due after 199/400 s.
    assert result["microseconds"] >= 199 / 400 * 1e6
    assert "due" in result["latency_of"]


def test_what_is_sent_at_a_rate_is_read(tool):
    result = bench(tool, "end-to-end", "--rate", 500, "--messages", 200, "--partitions", 2)
    assert (result["messages"], result["unread"]) == (200, 0)
    text = tool.text("bench", "end-to-end", "--rate", 500, "--messages", 50)
    assert "p99.9" in text and "of a core" in text
    assert made_topics(tool) == []


def test_time_ends_it(tool):
    started = time.monotonic()
    result = bench(tool, "produce", "--seconds", 1)
    assert 0.9e6 < result["microseconds"]
    assert time.monotonic() - started < WAIT_SECONDS_MAX


def interrupted(
    broker, tool, words: str, by: signal.Signals = signal.SIGINT, repeated: bool = False
) -> tuple[str, str]:
    """What it says to Ctrl-C once there is something in the topic that it made."""
    running = subprocess.Popen(
        [PREFIX / "bin" / "millrace", "-b", broker.address, "-o", "json", "bench", *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    first = ("--count", 1, "--format", "%o")
    while not (made := made_topics(tool)) or not tool.text("consume", made[0], *first):
        assert time.monotonic() < deadline and running.poll() is None
    running.send_signal(by)
    while repeated and running.poll() is None:
        assert time.monotonic() < deadline
        running.send_signal(by)
    output, errors = running.communicate(timeout=WAIT_SECONDS_MAX)
    assert running.returncode == -by, errors
    assert f"interrupted; topic {made[0]} is being removed" in errors
    assert made_topics(tool) == []
    return output, errors


@pytest.mark.parametrize(
    "words",
    [
        "produce --seconds 300 --in-flight 20 --connections 2",
        "end-to-end --seconds 300 --rate 2000 --size 100",
    ],
)
def test_ctrl_c_tells_what_was_measured_and_leaves_no_topic(broker, tool, words):
    output, _errors = interrupted(broker, tool, words)
    result = json.loads(output)
    assert result["interrupted"] and result["messages"] > 0


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_ended_or_loses_the_terminal_leaves_no_topic(broker, tool, by):
    # The shell tells of a closed terminal, and the kernel again when the shell has ended.
    interrupted(broker, tool, "produce --seconds 300", by, repeated=by == signal.SIGHUP)


def test_ctrl_c_while_a_topic_is_filled_measures_nothing(broker, tool):
    output, errors = interrupted(broker, tool, "consume --messages 100000000")
    assert output == "" and "interrupted before anything was measured" in errors


def test_who_ignores_ctrl_c_is_not_interrupted(broker, tool):
    """As nohup and a shell's & without job control start it, for either signal."""
    words = ["-b", broker.address, "-o", "json", "bench", "produce", "--rate", "100", "--messages", "300"]
    running = subprocess.Popen(
        ["sh", "-c", 'trap "" INT TERM; exec "$@"', "sh", PREFIX / "bin" / "millrace", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (made := made_topics(tool)) or not tool.text("consume", made[0], "--count", 1, "--format", "%o"):
        assert time.monotonic() < deadline and running.poll() is None
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    output, errors = running.communicate(timeout=WAIT_SECONDS_MAX)
    assert running.returncode == 0, errors
    result = json.loads(output)
    assert (result["interrupted"], result["messages"]) == (False, 300)


def test_what_cannot_be_measured_is_told(tool):
    port = free_port()
    nobody = run("--bootstrap", f"127.0.0.1:{port}", "bench", "produce")
    assert nobody.code == 69 and str(port) in nobody.errors
    tool.text("topic", "create", "bench-empty", "--partitions", 1)
    empty = run("--bootstrap", tool.address, "bench", "consume", "--topic", "bench-empty")
    assert empty.code == 1 and "empty" in empty.errors
    for words in (["--codec", "brotli"], ["--acks", "0"], ["--size", "0"], ["--rate", "fast"]):
        wrong = run("--bootstrap", tool.address, "bench", "produce", *words)
        assert wrong.code == 64 and words[0] in wrong.errors
