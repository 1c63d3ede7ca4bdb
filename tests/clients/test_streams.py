"""Streams: operators between topics, with state, over restarts and kills, and when they misbehave."""

import os
import re
import shutil
import signal
import threading
import time
from collections import Counter

import pytest

from conftest import running
from harness.broker import PREFIX, Millrace
from harness.client import ClientError
from harness.confluent import Confluent
from harness.json_doc import documented
from harness.paths import SOURCE
from harness.records import Record, number_of, numbered_records
from harness.streams import STEPS, Streams
from harness.tool import Tool, run
from test_daemon import BAD_CONFIG, daemon

pytestmark = pytest.mark.millrace

PARTITIONS = 3
TOPIC_DELETION_DISABLED = 73
TOOL_SECONDS_MAX, TRIES = 0.9, 5
"""Of the quickest: on a busy machine a process may start late."""
README = SOURCE / "plugins" / "transport" / "http" / "README.md"


@pytest.fixture
def broker(tmp_path):
    one = Millrace(
        tmp_path / "broker",
        {"num.partitions": PARTITIONS},
        {"plugins.path": f'["{STEPS}"]'},
    )
    with running(one):
        yield one


@pytest.fixture
def streams(broker) -> Streams:
    return Streams(broker)


@pytest.fixture
def kafka(broker):
    client = Confluent(broker.address)
    client.create_topic("in", PARTITIONS)
    yield client
    client.close()


def records_of(client: Confluent, topic: str) -> list[Record]:
    partitions = client.read_all(topic, PARTITIONS)
    return [record for records in partitions.values() for record in records]


def values_of(client: Confluent, topic: str) -> list[bytes]:
    return [record.value for record in records_of(client, topic)]


def send(client: Confluent, values: list[bytes], key: bytes | None = b"k") -> None:
    client.produce("in", [Record(key, value) for value in values])


def java_partition(key: bytes, partitions: int) -> int:
    """What Kafka's default partitioner chooses: murmur2."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := key[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


# ---- the plain way ----


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_pass_with_key_value_headers_and_time(streams, kafka, codec):
    streams.create("copy", "in", "out", "pass")
    sent = numbered_records(10_000)
    kafka.produce("in", sent, codec=codec)
    streams.wait_for_position("copy", len(sent))
    stored = kafka.read_all("out", PARTITIONS)
    assert Counter(record for records in stored.values() for record in records) == Counter(sent)
    times = {record.value: record.timestamp for record in records_of(kafka, "in")}
    for partition, records in stored.items():
        for record in records:
            assert partition == java_partition(record.key, PARTITIONS)
            assert record.timestamp == times[record.value]
        for key in {record.key for record in records}:
            numbers = [number_of(record) for record in records if record.key == key]
            assert numbers == sorted(numbers), "records of a key stay in order"


def test_a_stream_of_the_configuration(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text(
        '[stream.count]\nsources = ["in"]\nsink = "counts"\n'
        '[[stream.count.steps]]\noperator = "words"\n'
    )
    broker = Configured(tmp_path / "broker", config)
    try:
        broker.start()
        streams = Streams(broker)
        waiting = streams.wait_for_state("count", "waiting")
        assert "there is no topic in" in waiting["reason"]
        client = Confluent(broker.address)
        client.create_topic("in", PARTITIONS)
        client.produce("in", [Record(b"k", b"one two two")])
        fact = streams.wait_for_position("count", 1)
        assert fact["declared_in"] == f"{config}:1:9"
        counts = {record.key: record.value for record in client.read("counts", 0)}
        assert counts == {b"one": b"1", b"two": b"2"}
        refused = streams.http.ask("DELETE", "/admin/streams/count")
        assert refused.status == 409 and f"{config}:1:9" in refused.text
        client.close()
        broker.end()
    finally:
        broker.close()


def test_each_error_policy_of_the_configuration(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text(
        "".join(
            f'[stream.{name}]\nsources = ["in"]\nsink = "out-{name}"\non-error = "{name}"\n{more}'
            f'[[stream.{name}.steps]]\noperator = "misbehaves"\nhow = "throw"\n'
            for name, more in (
                ("stop", ""),
                ("skip", ""),
                ("dead-letter", 'dead-letter = "bad"\n'),
            )
        )
    )
    broker = Configured(tmp_path / "broker", config)
    try:
        broker.start()
        streams = Streams(broker)
        client = Confluent(broker.address)
        client.create_topic("in", PARTITIONS)
        send(client, [b"a", b"poison", b"b"])
        failed = streams.wait_for_state("stop", "failed")
        assert "offset 1" in failed["reason"], failed
        for name in ("skip", "dead-letter"):
            streams.wait_for_position(name, 3)
        for topic, values in (
            ("out-stop", [b"a"]),
            ("out-skip", [b"a", b"b"]),
            ("out-dead-letter", [b"a", b"b"]),
            ("bad", [b"poison"]),
        ):
            assert [record.value for record in client.read(topic, 0)] == values, topic
        client.close()
        broker.end()
    finally:
        broker.close()


class Configured(Millrace):
    def __init__(self, folder, config):
        super().__init__(folder, {}, {"plugins.path": f'["{STEPS}"]'})
        self.config = config

    def command(self):
        return [*super().command(), "--config", str(self.config)]


def test_what_a_stream_keeps_is_no_users_topic(streams, kafka):
    streams.create("count", "in", "counts", "words")
    send(kafka, [b"a"] * 5)
    streams.wait_for_position("count", 5)
    with pytest.raises(ClientError):
        kafka.produce("__stream_count_changelog", [Record(b"k", b"garbage")])
    with pytest.raises(ClientError) as refused:
        kafka.delete_topic("__stream_count_changelog")
    assert refused.value.code == TOPIC_DELETION_DISABLED
    assert streams.ask("count", "stop").status == 200
    kafka.delete_topic("__stream_count_changelog")
    assert streams.ask("count", "start").status == 200
    streams.wait_for_position("count", 5)
    send(kafka, [b"a"])
    streams.wait_for_position("count", 6)


def test_a_sink_that_is_deleted_is_made_again(streams, broker, kafka):
    streams.create("copy", "in", "out", "pass")
    send(kafka, [b"before"])
    streams.wait_for_position("copy", 1)
    kafka.delete_topic("out")
    send(kafka, [b"after"])
    streams.wait_for_position("copy", 2)
    assert b"after" in values_of(kafka, "out")
    broker.wait_for_log_line("WARN", "outputs of a stream cannot be written", "out")


def test_bounds_are_the_same_over_the_admin_api(streams, kafka):
    for more, part in (
        ({"memory_bytes": 1}, "1048576"),
        ({"timeout_ms": 2**62}, "3600000"),
        ({"sink": "__stream_x_changelog"}, "keeps the state"),
    ):
        wanted = {"sources": ["in"], "sink": "out", "steps": [{"operator": "pass"}]} | more
        answer = streams.http.ask("POST", "/admin/streams", {"name": "x"} | wanted)
        assert answer.status == 400, answer.text
        assert part in answer.text


def test_declared_over_the_admin_api_it_outlives_a_restart(streams, broker, kafka):
    streams.create("count", "in", "counts", "words")
    send(kafka, [b"a b"] * 10)
    streams.wait_for_position("count", 10)
    assert streams.ask("count", "stop").status == 200
    send(kafka, [b"a"] * 5)
    broker.stop()
    broker.start()
    assert streams.describe("count")["state"] == "stopped", "it was stopped, and stays so"
    assert streams.ask("count", "start").status == 200
    streams.wait_for_position("count", 15)
    counts = Counter()
    for record in records_of(kafka, "counts"):
        counts[record.key] = max(counts[record.key], int(record.value))
    assert counts == {b"a": 15, b"b": 10}
    assert streams.http.ask("DELETE", "/admin/streams/count").status == 200
    assert streams.http.get("/admin/streams") == {"streams": []}
    broker.stop()
    broker.start()
    assert streams.http.get("/admin/streams") == {"streams": []}


def test_latest_begins_with_what_comes_next(streams, broker, kafka):
    send(kafka, [b"before"])
    streams.create("late", "in", "out", "pass", **{"from": "latest"})
    streams.wait_for_position("late", 1)
    broker.kill()
    broker.start()
    send(kafka, [b"after"])
    streams.wait_for_position("late", 2)
    assert values_of(kafka, "out") == [b"after"]


def test_more_partitions_of_the_source_are_taken_up(streams, kafka):
    streams.create("copy", "in", "out", "pass")
    streams.wait_for_state("copy", "running")
    kafka.grow("in", PARTITIONS + 1)
    kafka.wait_until_ready("in", PARTITIONS + 1)
    kafka.produce("in", [Record(None, b"there", partition=PARTITIONS)])
    streams.wait_for_position("copy", 1)
    assert values_of(kafka, "out") == [b"there"]


def test_the_metrics_are_those_of_the_list(streams, kafka):
    streams.create("copy", "in", "out", "pass")
    send(kafka, [b"x"] * 100)
    streams.wait_for_position("copy", 100)
    text = README.read_text()
    listed = set(re.findall(r"^\| `(millrace_stream_[a-z_]+)` ", text, re.MULTILINE))
    metrics = streams.http.metrics()
    assert {name for name in metrics.names if name.startswith("millrace_stream_")} == listed
    labels = {"stream": "copy", "step": "pass"}
    assert metrics.value("millrace_stream_step_records_in_total", **labels) == 100
    assert metrics.value("millrace_stream_step_records_out_total", **labels) == 100
    assert metrics.value("millrace_stream_running", stream="copy") == 1


# ---- errors ----


def test_stop_ends_at_the_record_and_goes_on_from_it(streams, kafka):
    streams.create("picky", "in", "out", "misbehaves", options={"how": "fail"})
    send(kafka, [b"a", b"poison", b"b"])
    fact = streams.wait_for_state("picky", "failed")
    assert "this record is not to my liking" in fact["reason"]
    assert re.search(r"step misbehaves at in-\d offset 1", fact["reason"])
    assert streams.position("picky") == 1, "what was before it is committed"
    assert values_of(kafka, "out") == [b"a"], "nothing of the record that failed counts"
    streams.ask("picky", "start")
    streams.wait_for_state("picky", "failed")
    assert values_of(kafka, "out") == [b"a"]


@pytest.mark.parametrize("how", ["fail", "throw", "throw-other", "garbage", "nowhere"])
def test_skip_goes_on_without_the_record(streams, kafka, how):
    streams.create("lax", "in", "out", "misbehaves", options={"how": how}, on_error="skip")
    send(kafka, [b"a", b"poison", b"b"])
    fact = streams.wait_for_position("lax", 3)
    assert fact["state"] == "running"
    assert fact["steps"][0]["errors"] == 1
    assert values_of(kafka, "out") == [b"a", b"b"]


def test_dead_letters_say_why_and_where_from(streams, kafka):
    streams.create(
        "careful",
        "in",
        "out",
        "misbehaves",
        options={"how": "throw"},
        on_error="dead-letter",
        dead_letter="bad",
    )
    kafka.produce(
        "in",
        [
            Record(b"k", b"a", partition=1),
            Record(b"k", b"poison", (("own", b"header"),), partition=1),
            Record(b"k", b"b", partition=1),
        ],
    )
    streams.wait_for_position("careful", 3)
    assert values_of(kafka, "out") == [b"a", b"b"]
    (letter,) = records_of(kafka, "bad")
    assert (letter.key, letter.value) == (b"k", b"poison")
    assert letter.headers == (
        ("own", b"header"),
        ("millrace-error", b"it threw: thrown on purpose"),
        ("millrace-stream", b"careful"),
        ("millrace-step", b"misbehaves"),
        ("millrace-topic", b"in"),
        ("millrace-partition", b"1"),
        ("millrace-offset", b"1"),
    )


@pytest.mark.fault
@pytest.mark.parametrize("how", ["hoard", "flood", "swallow"])
def test_beyond_its_memory_a_stream_ends_alone(streams, kafka, how):
    streams.create("copy", "in", "copied", "pass")
    streams.create(
        "greedy", "in", "out", "misbehaves", options={"how": how}, memory_bytes=20 << 20,
        on_error="skip",
    )
    send(kafka, [b"a", b"poison", b"b"])
    fact = streams.wait_for_state("greedy", "failed")
    assert "memory of 20971520 bytes" in fact["reason"]
    streams.wait_for_position("copy", 3)
    assert values_of(kafka, "out") == [b"a"]


@pytest.mark.fault
def test_who_never_comes_back_is_given_up_and_the_others_go_on(streams, broker, kafka):
    for number in range(3):  # more than there are workers
        streams.create(
            f"hung-{number}", "in", "out", "misbehaves", options={"how": "hang"}, timeout_ms=1000
        )
    streams.create("copy", "in", "copied", "pass")
    send(kafka, [b"a", b"poison", b"b"])
    for number in range(3):
        fact = streams.wait_for_state(f"hung-{number}", "failed")
        assert "did not come back within 1000 ms" in fact["reason"]
        assert "step misbehaves at in" in fact["reason"]
    streams.wait_for_position("copy", 3)
    streams.ask("hung-0", "start")
    streams.wait_for_state("hung-0", "failed")
    send(kafka, [b"c"])
    streams.wait_for_position("copy", 4)
    kafka.produce("in", numbered_records(1000), codec="zstd")  # these need workers as well
    code, seconds = broker.stop()
    assert code == broker.stop_code and seconds < broker.stop_seconds_max, broker.log_tail()


@pytest.mark.parametrize("how", ["refuse", "make-null", "make-throws"])
def test_an_operator_that_cannot_be_made_is_refused(streams, how):
    expected = {
        "refuse": "these options go not together",
        "make-null": "make() returned null",
        "make-throws": "it threw: make() throws",
    }
    step = {"operator": "misbehaves", "options": {"how": how}}
    spec = {"name": "stillborn", "sources": ["in"], "sink": "out", "steps": [step]}
    answer = streams.http.ask("POST", "/admin/streams", spec)
    assert answer.status == 400 and expected[how] in answer.json()["message"], answer
    assert streams.http.get("/admin/streams") == {"streams": []}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sources": []}, "sources: expected a topic at least"),
        ({"sources": ["in", "in"]}, '"in" stands twice'),
        ({"sink": "in"}, "the stream would feed itself"),
        ({"sink": "no/topic"}, "is no name of a topic"),
        ({"guarantee": "exactly-once"}, "comes with transactions"),
        ({"on_error": "dead-letter"}, "needs it"),
        ({"on_error": "ignore"}, "expected one of"),
        ({"name": "a/b"}, "is no name of a stream"),
        ({"steps": []}, "expected a step at least"),
        ({"steps": [{"operator": "pass"}, {"operator": "pass"}]}, "give it a name of its own"),
        ({"steps": [{"operator": "paß"}]}, "expected the NAME of operators/NAME.so"),
        ({"steps": [{"operator": "pas"}]}, "nearest known: pass"),
        ({"steps": [{"operator": "pass", "options": {"x": 1}}]}, "unknown option x"),
        ({"steps": [{"operator": "misbehaves"}]}, "needs the option how"),
        (
            {"steps": [{"operator": "misbehaves", "options": {"how": "thro"}}]},
            "nearest known: throw",
        ),
        ({"steps": [{"operator": "misbehaves", "options": {"how": 3}}]}, "found integer 3"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_declaration_is_refused_and_says_why(streams, change, words):
    spec = {"name": "s", "sources": ["in"], "sink": "out", "steps": [{"operator": "pass"}]}
    answer = streams.http.ask("POST", "/admin/streams", spec | change)
    assert answer.status == 400 and words in answer.json()["message"], answer
    assert streams.http.get("/admin/streams") == {"streams": []}


def test_a_wrong_option_in_the_configuration_is_told_with_line_and_column(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text(
        f'[plugins]\npath = ["{STEPS}"]\n'
        '[stream.a]\nsources = ["in"]\nguarantee = "exactly-once"\n'
        '[[stream.a.steps]]\noperator = "misbehaves"\nhow = "thro"\nwhy = 1\n'
        '[stream.b]\nsources = "in"\nsteps = [{ operator = "pas" }, 3]\n'
        "[stream.c]\n"
    )
    checked = daemon("--config", config, "--check")
    assert checked.returncode == BAD_CONFIG
    for line in (
        f"{config}:8:7: stream.a.steps[0].how: expected one of",
        f"{config}:9:1: unknown key stream.a.steps[0].why",
        f"{config}:11:11: stream.b.sources: expected a list of texts",
        f"{config}:12:23:",  # there is no operators/pas.so
        f"{config}:12:32: stream.b.steps[1]: expected a table",
        f"{config}:13:9: [stream.c] needs sources",
        f"{config}:13:9: stream.c: expected its steps",
    ):
        assert line in checked.stderr, checked.stderr


# ---- replaced while it runs ----


def test_an_operator_is_replaced_while_it_runs(streams, broker, kafka, tmp_path):
    """Every record is seen once, by the old one or the new one, with the state of both; also by a
    file that lies under the same name as the one before."""
    streams.create("stamp", "in", "out", "stamp_one")
    file = tmp_path / "stamp.so"
    total = 0
    for version in ("two", "one", "two"):
        send(kafka, [b"x"] * 500)
        streams.wait_for_position("stamp", total + 1)
        total += 500
        file.unlink(missing_ok=True)
        shutil.copy(STEPS / "operators" / f"stamp_{version}.so", file)
        answer = streams.ask("stamp", "replace", {"step": "stamp_one", "file": str(file)})
        assert answer.status == 200, answer
        assert streams.describe("stamp")["steps"][0]["version"] == version
        send(kafka, [b"y"] * 500)
        total += 500
        streams.wait_for_position("stamp", total)
    stamps = [value.decode().split(":") for value in values_of(kafka, "out")]
    assert [int(count) for _, count, _ in stamps] == list(range(1, total + 1))
    assert stamps[0][0] == "one" and stamps[-1][0] == "two"
    assert all(version == "two" for version, _, _ in stamps[-500:])
    # After a restart it is the file that has replaced it, though that is gone.
    file.unlink()
    broker.kill()
    broker.start()
    send(kafka, [b"z"])
    streams.wait_for_position("stamp", total + 1)
    assert values_of(kafka, "out")[-1] == f"two:{total + 1}:z".encode()


def test_what_cannot_replace_is_refused_and_the_stream_goes_on(streams, broker, kafka, tmp_path):
    streams.create("copy", "in", "out", "pass")
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"s3cret")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    codec = PREFIX / "lib" / "millrace" / "plugins" / "compression" / "lz4.so"
    other = STEPS / "operators" / "misbehaves.so"
    for file, words in (
        (junk, "not an ELF file"),
        (tmp_path, "a folder, expected a file"),
        (fifo, "a device, pipe or socket"),
        ("/dev/zero", "a device, pipe or socket"),
        (tmp_path / "none.so", "there is no such file"),
        (tmp_path / ("x" * 300), "File name too long"),
        ("none.so", "expected the whole path"),
        (codec, "a compression plugin, expected an operators plugin"),
        (other, "step pass needs the option how"),
    ):
        answer = streams.ask("copy", "replace", {"step": "pass", "file": str(file)})
        assert answer.status == 400, answer
        message = answer.json()["message"]
        assert words in message and "s3cr" not in message and ".operators" not in message
        assert file == other or str(file) in message
    kept = broker.folder / "data" / ".operators"
    assert not kept.exists() or not list(kept.iterdir())
    assert streams.ask("copy", "replace", {"step": "pas", "file": str(junk)}).status == 404
    assert streams.ask("copy", "replace", {"step": "pass"}).status == 400
    send(kafka, [b"x"])
    streams.wait_for_position("copy", 1)


def test_a_stream_whose_operator_is_gone_stays_in_view(streams, broker, kafka, tmp_path):
    for name in ("one", "two"):
        streams.create(name, "in", f"out-{name}", "stamp_one")
        file = STEPS / "operators" / "stamp_two.so"
        answer = streams.ask(name, "replace", {"step": "stamp_one", "file": str(file)})
        assert answer.json()["kept"] is True
    broker.stop()
    for copy in (broker.folder / "data" / ".operators").iterdir():
        copy.unlink()
    broker.start()
    fact = streams.wait_for_state("one", "failed")
    assert "stamp_one" in fact["reason"] and ".operators" in fact["reason"]
    listed = streams.http.get("/admin/streams")["streams"]
    assert [one["state"] for one in listed] == ["failed", "failed"]
    assert streams.ask("one", "start").status == 400
    assert streams.http.ask("DELETE", "/admin/streams/two").status == 200
    file = STEPS / "operators" / "stamp_one.so"
    answer = streams.ask("one", "replace", {"step": "stamp_one", "file": str(file)})
    assert answer.status == 200, answer
    send(kafka, [b"x"])
    streams.wait_for_position("one", 1)
    assert values_of(kafka, "out-one") == [b"one:1:x"]


# ---- what is deleted and made anew ----


@pytest.mark.parametrize("partitions", [1, PARTITIONS, 5])
@pytest.mark.parametrize("records", [10, 500])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_source_that_is_made_anew_is_begun_anew(
    streams, broker, kafka, partitions, records, restarts
):
    """Whether it has fewer or more records than before, and fewer or more partitions."""
    streams.create("copy", "in", "out", "pass")
    kafka.produce("in", [Record(b"%d" % n, b"old-%d" % n) for n in range(records)])
    streams.wait_for_position("copy", records)
    if restarts:
        broker.stop()
        broker.start()
    kafka.delete_topic("in")
    kafka.create_topic("in", partitions)
    anew = [Record(b"%d" % n, b"new-%d" % n) for n in range(60)]
    kafka.produce("in", anew)

    def there(fact: dict) -> bool:
        running = [task for task in fact["tasks"] if task["state"] == "running"]
        behind = sum(source["position"] for task in running for source in task["sources"])
        return len(running) == len(fact["tasks"]) == partitions and behind == len(anew)

    streams.wait_until("copy", there)
    assert {record.value for record in anew} <= set(values_of(kafka, "out"))
    broker.wait_for_log_line("WARN", "a source was deleted and made anew")


def test_deleted_with_its_state_or_without(streams, broker, kafka):
    def make() -> None:
        streams.create("count", "in", "counts", "words")

    def last_count() -> int:
        return max(int(record.value) for record in records_of(kafka, "counts"))

    make()
    send(kafka, [b"a"] * 10)
    streams.wait_for_position("count", 10)
    assert streams.http.ask("DELETE", "/admin/streams/count", {"keep": True}).status == 400
    answer = streams.http.ask("DELETE", "/admin/streams/count", {"keep_state": True})
    assert answer.status == 200, answer
    make()
    send(kafka, [b"a"])
    streams.wait_for_position("count", 11)
    assert last_count() == 11
    assert streams.http.ask("DELETE", "/admin/streams/count").status == 200
    assert "__stream_count_changelog" not in kafka.list_topics()
    kafka.delete_topic("counts")
    make()
    streams.wait_for_position("count", 11)
    assert [int(record.value) for record in records_of(kafka, "counts")] == list(range(1, 12))


# ---- one record that cannot be processed ----


def test_one_record_is_skipped_when_asked_for(streams, broker, kafka):
    streams.create("strict", "in", "out", "misbehaves", options={"how": "fail"})
    send(kafka, [b"a", b"poison", b"b", b"poison", b"c"])
    for _ in range(2):
        fact = streams.wait_for_state("strict", "failed")
        assert "offset" in fact["reason"]
        assert streams.ask("strict", "start").status == 200
        streams.wait_for_state("strict", "failed")
        answer = streams.ask("strict", "start", {"skip": True})
        assert answer.status == 200, answer
        broker.wait_for_log_line("WARN", "is skipped, as was asked for")
    streams.wait_for_position("strict", 5)
    assert values_of(kafka, "out") == [b"a", b"b", b"c"]
    refused = streams.ask("strict", "start", {"skip": True})
    assert refused.status == 409 and "has not failed" in refused.text
    assert streams.ask("strict", "start", {"skip": 3}).status == 400


# ---- what may not be written to ----


def test_a_changelog_that_takes_too_little_says_so(streams, kafka):
    kafka.create_topic("__stream_copy_changelog", PARTITIONS, {"max.message.bytes": "100"})
    streams.create("copy", "in", "out", "pass")
    fact = streams.wait_for_state("copy", "failed")
    assert "max.message.bytes" in fact["reason"] and "millrace config set" in fact["reason"]


# ---- a broker that stands still, or stops ----


def test_a_process_that_was_stopped_does_not_end_its_streams(streams, broker, kafka):
    streams.create("slow", "in", "out", "misbehaves", options={"how": "dawdle"}, timeout_ms=3000)
    send(kafka, [b"x"])
    streams.wait_for_position("slow", 1)
    send(kafka, [b"poison"] * 4)  # 300 ms each
    threading.Event().wait(0.2)  # they have begun
    broker.process.send_signal(signal.SIGSTOP)
    threading.Event().wait(4)  # what is tested: a process that stands still
    broker.process.send_signal(signal.SIGCONT)
    assert streams.wait_for_position("slow", 5)["state"] == "running"


# ---- our tool ----


def seconds_of(tool: Tool, *words: object) -> float:
    began = time.monotonic()
    tool.text(*words)
    return time.monotonic() - began


@pytest.mark.alone
def test_the_tool_lists_describes_stops_starts_and_replaces(streams, broker, kafka):
    streams.create("copy", "in", "out", "pass")
    send(kafka, [b"x"] * 10)
    streams.wait_for_position("copy", 10)
    tool = Tool(broker.address)
    admin = ("--admin", broker.http_address())
    (listed,) = documented(tool, "stream list", *admin)
    assert [one["name"] for one in listed["streams"]] == ["copy"]
    assert "copy" in tool.text("stream", *admin, "list")
    (described,) = documented(tool, "stream describe", "copy", *admin)
    assert described["state"] == "running" and len(described["tasks"]) == PARTITIONS
    assert "pass" in tool.text("stream", *admin, "describe", "copy")
    tool.text("stream", *admin, "stop", "copy")
    assert streams.describe("copy")["state"] == "stopped"
    tool.text("stream", *admin, "start", "copy")
    streams.wait_for_state("copy", "running")
    file = STEPS / "operators" / "pass.so"
    tool.text("stream", *admin, "replace", "copy", "pass", file)
    documented(tool, "stream replace", "copy", "pass", file, *admin)
    assert documented(tool, "stream stop", "copy", *admin) == [{"stopped": "copy"}]
    assert documented(tool, "stream start", "copy", *admin) == [{"started": "copy"}]
    assert min(seconds_of(tool, "stream", *admin, "list") for _ in range(TRIES)) < TOOL_SECONDS_MAX, (
        "nothing is waited for"
    )
    slip = run("stream", *admin, "stop", "kopy")
    assert slip.code == 1 and "there is no stream kopy; nearest known: copy" in slip.errors
    empty = run("stream", *admin, "describe", "")
    assert empty.code == 64 and "the name of the stream is empty" in empty.errors
    assert "with its state" in tool.text("stream", *admin, "delete", "copy")
    unknown = run("stream", *admin, "describe", "none")
    assert unknown.code == 1 and "there is no stream none" in unknown.errors
    nowhere = run("stream", "--admin", "127.0.0.1:1", "list")
    assert nowhere.code == 69
