"""The shipped operators in streams of a live broker."""

import json
import re
import time

import pytest

from conftest import running
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.records import Record
from harness.streams import Streams
from test_daemon import BAD_CONFIG, daemon

pytestmark = pytest.mark.millrace


@pytest.fixture
def broker(tmp_path):
    one = Millrace(tmp_path / "broker", {"num.partitions": 1})
    with running(one):
        yield one


@pytest.fixture
def streams(broker) -> Streams:
    return Streams(broker)


@pytest.fixture
def kafka(broker):
    client = Confluent(broker.address)
    client.create_topic("in", 1)
    yield client
    client.close()


def create(streams: Streams, steps: list[dict], **more: object) -> None:
    spec = {"name": "s", "sources": ["in"], "sink": "out", "steps": steps, **more}
    answer = streams.http.ask("POST", "/admin/streams", spec)
    assert answer.status == 201, answer


def step(operator: str, **options: object) -> dict:
    return {"operator": operator, "options": options}


def order(state: str, *skus: str) -> bytes:
    items = [{"sku": sku, "price": 1, "card": "4111 1111"} for sku in skus]
    return json.dumps({"state": state, "items": items}).encode()


def test_steps_behind_each_other(streams, kafka):
    """Orders that are paid, one record for each item, without card numbers, each item once; books
    go elsewhere. What is no JSON becomes a dead letter, and the stream goes on."""
    for topic in ("books", "bad"):
        kafka.create_topic(topic, 1)
    create(
        streams,
        [
            step("filter", field="value.state", **{"is": "equal"}, to="paid"),
            step("flatten", field="value.items", key="value.sku"),
            step("map", drop=["value.price"], redact=["value.card"], rename=["value.sku=item"]),
            step("dedup", within_ms=3_600_000),
            step("route", field="value.item", topics=["book=books"]),
        ],
        on_error="dead-letter",
        dead_letter="bad",
    )
    headers = (("from", b"shop"),)
    kafka.produce(
        "in",
        [
            Record(b"1", order("paid", "pen", "book"), headers),
            Record(b"2", order("open", "lamp"), headers),
            Record(b"3", b"garbage", headers),
            Record(b"4", order("paid", "pen", "ink"), headers),
        ],
    )
    streams.wait_for_position("s", 4)
    assert [(one.key, one.value, one.headers) for one in kafka.read("out", 0)] == [
        (b"pen", b'{"item":"pen","card":"***"}', headers),
        (b"ink", b'{"item":"ink","card":"***"}', headers),
    ]
    assert [one.key for one in kafka.read("books", 0)] == [b"book"]
    assert [one.value for one in kafka.read("bad", 0)] == [b"garbage"]


def test_what_is_too_fast_is_slowed_down_and_nothing_is_lost(streams, kafka):
    records, rate = 40, 20
    kafka.produce("in", [Record(b"k", b"%d" % n) for n in range(records)])
    began = time.monotonic()
    create(streams, [step("throttle", records_per_second=rate)])
    streams.wait_for_position("s", records)
    # The last need not wait for its own share.
    assert time.monotonic() - began > (records / 2) / rate
    assert [int(one.value) for one in kafka.read("out", 0)] == list(range(records))


def test_what_was_seen_is_remembered_over_a_kill(streams, broker, kafka):
    create(streams, [step("dedup", field="header.id")])
    one = Record(b"k", b"v", (("id", b"a"),))
    kafka.produce("in", [one, one])
    streams.wait_for_position("s", 2)
    broker.kill()
    broker.start()
    kafka.produce("in", [one, Record(b"k", b"w", (("id", b"b"),))])
    streams.wait_for_position("s", 4)
    assert [found.value for found in kafka.read("out", 0)] == [b"v", b"w"]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ('operator = "filter"\nfield = "valeu.a"', "field: expected key, value, header.NAME"),
        ('operator = "filter"\nfield = "key"\nis = "matching"\nto = "("', "regular expression"),
        ('operator = "map"', "none of keep, drop, rename and redact is set"),
        ('operator = "route"\nfield = "key"\ntopics = ["a"]', "expected TEXT=TOPIC"),
        ('operator = "flatten"\nkey = "header.a"', "key: expected value or value.PATH"),
        ('operator = "throttle"', "neither records_per_second nor bytes_per_second"),
        ('operator = "dedup"\nfield = "x"', "field: expected key, value, header.NAME"),
    ],
)
def test_an_option_that_means_nothing_is_told_with_line_and_column(tmp_path, steps, words):
    config = tmp_path / "millrace.toml"
    config.write_text(f'[stream.a]\nsources = ["in"]\nsink = "out"\n[[stream.a.steps]]\n{steps}\n')
    started = daemon("--config", config, "--set", f"broker.data={tmp_path / 'data'}")
    assert started.returncode == BAD_CONFIG
    # Of the option, or of the operator where none is named.
    places = re.findall(rf"{re.escape(str(config))}:(\d+):\d+: ", started.stderr)
    option = words.partition(":")[0]
    lines = config.read_text().splitlines()
    named = [at for at, line in enumerate(lines, 1) if line.startswith(f"{option} =")]
    assert words in started.stderr, started.stderr
    assert places and int(places[0]) in (named or [5, 6, 7, 8]), started.stderr


def test_a_route_to_where_nobody_may_write_is_refused(streams, kafka, tmp_path):
    for topic, words in (
        ("in", "a source as well"),
        ("__consumer_offsets", "is the broker's own"),
        ("__stream_x_changelog", "keeps the state of a stream"),
        ("../../x", "is no name of a topic"),
        ("x" * 300, "is no name of a topic"),
    ):
        for more in ({"topics": [f"a={topic}"]}, {"topics": ["a=b"], "otherwise": topic}):
            steps = [step("route", field="key", **more)]
            spec = {"name": "r", "sources": ["in"], "steps": steps}
            answer = streams.http.ask("POST", "/admin/streams", spec)
            assert answer.status == 400 and words in answer.json()["message"], answer
    config = tmp_path / "millrace.toml"
    config.write_text(
        '[stream.a]\nsources = ["in"]\n[[stream.a.steps]]\n'
        'operator = "route"\nfield = "key"\ntopics = ["a=in"]\n'
    )
    started = daemon("--config", config, "--set", f"broker.data={tmp_path / 'data'}")
    assert started.returncode == BAD_CONFIG and "a source as well" in started.stderr
