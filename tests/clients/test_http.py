"""What the transport `http` serves: metrics, health and administration, beside a client that
speaks Kafka."""

import re
import shutil
import socket
import time

import pytest

from conftest import PARTITIONS, running
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent
from harness.http import OF_COMPACTED_PARTITIONS, Http
from harness.paths import SOURCE
from harness.records import Record
from harness.wire import RawConnection

pytestmark = pytest.mark.millrace

README = SOURCE / "plugins" / "transport" / "http" / "README.md"


@pytest.fixture(scope="module")
def broker(broker_kind, tmp_path_factory):
    """Not that of all: which metrics there are, and of each partition or each topic, goes by the topics it has."""
    with running(broker_kind(tmp_path_factory.mktemp("http"), {"num.partitions": PARTITIONS})) as own:
        yield own


@pytest.fixture
def http(broker) -> Http:
    return Http(broker.http_address())


@pytest.fixture
def kafka(broker):
    client = Confluent(broker.address)
    yield client
    client.close()


# ---- metrics ----


def test_the_metrics_are_those_of_the_list(http, kafka, topic):
    kafka.create_topic(topic, 1)  # for the series of partitions
    with RawConnection(kafka.address) as connection:
        assert connection.fetch("no-such-topic", 0)[0] != 0  # for the counter of errors
    listed = re.findall(r"^\| `((?:millrace|process)_[a-z_]+)` ", README.read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    # Some are there while there are streams, or compacted topics: test_streams.py, test_compaction.py.
    listed = {name for name in listed if not name.startswith("millrace_stream_")}
    assert http.metrics().names == listed - OF_COMPACTED_PARTITIONS


def test_metrics_follow_what_happens(http, kafka, topic):
    kafka.create_topic(topic, 2)
    before = http.metrics()
    kafka.produce(topic, [Record(None, b"x" * 1000, partition=1)] * 500)
    assert len(kafka.read(topic, 1)) == 500
    now = http.metrics()

    def grown(name: str, **labels: str) -> float:
        return now.value(name, **labels) - before.value(name, **labels)

    partition = {"topic": topic, "partition": "1"}
    assert grown("millrace_partition_end_offset", **partition) == 500
    assert grown("millrace_partition_high_watermark", **partition) == 500
    assert grown("millrace_partition_bytes", **partition) > 500_000
    assert grown("millrace_partition_appended_bytes_total", **partition) > 500_000
    assert grown("millrace_partition_read_bytes_total", **partition) > 500_000
    assert grown("millrace_network_sent_bytes_total", **{"from": "file"}) > 500_000
    assert now.value("millrace_partition_start_offset", **partition) == 0
    assert grown("millrace_kafka_requests_total", api="Produce") >= 1
    assert grown("millrace_kafka_request_seconds_count", api="Produce") >= 1
    assert grown("millrace_kafka_received_bytes_total") > 500_000
    assert grown("millrace_kafka_connections_accepted_total") >= 1
    assert now.value("process_resident_memory_bytes") > 1 << 20
    assert now.value("process_open_fds") > 3
    assert abs(now.value("process_start_time_seconds") - time.time()) < 3600


def test_a_bad_connection_is_counted(broker, http):
    before = http.metrics()
    with RawConnection(broker.address) as connection:
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.socket.recv(1) == b""
    closed = "millrace_kafka_connections_closed_total"
    now = http.metrics()
    assert now.value(closed, reason="bad_request") == before.value(closed, reason="bad_request") + 1


# ---- health ----


def test_health(http):
    assert http.get("/healthz") == {"status": "ok"}
    assert http.ask("HEAD", "/healthz").text == ""
    assert http.ask("POST", "/healthz", {}).status == 405
    assert http.ask("POST", "/healthz", {}).fields["allow"] == "GET, HEAD"


# ---- administration ----


def test_a_topic_from_its_creation_to_its_end(http, kafka, topic):
    made = http.ask("POST", "/admin/topics", {"name": topic, "configs": {"retention.ms": 1000}})
    assert made.status == 201
    assert made.json()["partitions"] == PARTITIONS
    assert topic in kafka.list_topics()
    again = http.ask("POST", "/admin/topics", {"name": topic})
    assert (again.status, again.json()["error"]) == (409, "TOPIC_ALREADY_EXISTS")

    shown = http.get(f"/admin/topics/{topic}")
    assert [partition["log_end"] for partition in shown["partitions"]] == [0] * PARTITIONS
    assert shown["configs"]["retention.ms"] == {"value": "1000", "source": "topic"}

    path = f"/admin/topics/{topic}/configs"
    changed = http.ask("PATCH", path, {"retention.ms": None, "cleanup.policy": "compact"})
    assert changed.status == 200, changed
    configs = changed.json()["configs"]
    assert configs["cleanup.policy"] == {"value": "compact", "source": "topic"}
    assert configs["retention.ms"]["source"] == "default"
    refused = http.ask("PATCH", path, {"retention.ms": "soon"})
    assert (refused.status, refused.json()["error"]) == (400, "INVALID_CONFIG")

    assert http.ask("PATCH", f"/admin/topics/{topic}", {"partitions": PARTITIONS + 1}).status == 200
    assert len(http.get(f"/admin/topics/{topic}")["partitions"]) == PARTITIONS + 1

    assert http.ask("DELETE", f"/admin/topics/{topic}").json() == {"deleted": topic}
    assert http.ask("GET", f"/admin/topics/{topic}").status == 404
    assert topic not in kafka.list_topics()


def test_what_runs_is_told(broker, http):
    kinds = {plugin["kind"] for plugin in http.get("/admin/plugins")["plugins"]}
    assert kinds == {"compression", "coordination", "storage", "operators", "transport"}
    settings = http.get("/admin/config")["settings"]
    assert settings["transport.kafka.listen"] == {
        "value": broker.address,
        "source": "--set transport.kafka.listen=…",
    }
    assert settings["broker.rack"] == {"value": "", "source": "default"}
    brokers = http.get("/admin/brokers")
    assert [one["address"] for one in brokers["brokers"]] == [broker.address]


def test_a_log_level_changes_at_once(broker, http):
    assert http.get("/admin/log-level") == {"level": "info", "subsystems": {}}
    wanted = {"subsystem": "transport.kafka", "level": "debug"}
    assert http.ask("PUT", "/admin/log-level", wanted).status == 200
    with RawConnection(broker.address) as connection:
        connection.ask_api_versions()
    broker.wait_for_log_line("DEBUG", "transport.kafka", "connection ends", str(connection.port))
    back = http.ask("PUT", "/admin/log-level", {**wanted, "level": None})
    assert back.json() == {"level": "info", "subsystems": {}}


def test_an_unknown_path_is_told_all_others(http):
    answer = http.ask("GET", "/admin/nothing")
    assert answer.status == 404
    assert {"/healthz", "/metrics", "/admin/topics/NAME"} <= set(answer.json()["paths"])


@pytest.mark.parametrize(
    "fields",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Content_Type": "text/plain"},
    ],
    ids=str,
)
def test_a_page_cannot_change_anything(http, kafka, topic, fields):
    answer = http.ask("POST", "/admin/topics", {"name": topic}, **fields)
    assert answer.status in (403, 415)
    assert topic not in kafka.list_topics()


# ---- connections ----


@pytest.mark.parametrize(
    "greeting, reason",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\x00\x00\x00\x12\x00\x12\x00\x03", "Kafka"),
        (b"nonsense\r\n\r\n", "method"),
        (b"GET /" + b"x" * 100_000, "header"),
    ],
    ids=["tls", "kafka", "nonsense", "long"],
)
def test_what_is_no_request_ends_its_connection_alone(broker, http, greeting, reason):
    with RawConnection(http.address) as connection:
        connection.send(greeting)
        while connection.socket.recv(4096):
            pass
        line = broker.wait_for_log_line("transport.http: closing", f"127.0.0.1:{connection.port} ")
    assert reason in line
    assert http.get("/healthz") == {"status": "ok"}


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: lo", b"POST /admin/topics"])
def test_connections_are_bounded_and_keep_nobody_away(http, sent):
    """Health is told while more connections than there may be are held open, or ask half."""
    held = []
    try:
        for n in range(100):  # max.connections is 64
            held.append(RawConnection(http.address))
            held[-1].send(sent)
            if n % 10 == 9:
                assert http.get("/healthz") == {"status": "ok"}
        assert held[0].socket.recv(1) == b"", "the oldest gave way"
    finally:
        for connection in held:
            connection.socket.close()
    assert http.get("/healthz") == {"status": "ok"}


def test_a_stop_does_not_wait_for_idle_connections(own_broker):
    http = Http(own_broker.http_address())
    with RawConnection(http.address) as idle:
        idle.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.receive(15) == b"HTTP/1.1 200 OK"
        code, seconds = own_broker.stop()
    assert code == 0 and seconds < 3
    with pytest.raises(OSError):
        socket.create_connection(http.address.rsplit(":", 1), timeout=1)


def test_a_partition_that_cannot_be_opened_is_told(own_broker, topic):
    kafka = Confluent(own_broker.address)
    kafka.create_topic(topic, 2)
    kafka.close()
    own_broker.stop()
    folder = own_broker.folder / "data" / f"{topic}-1"
    shutil.rmtree(folder)
    folder.write_text("this is no folder")
    http = Http(own_broker.start().http_address())
    answer = http.ask("GET", "/healthz")
    assert answer.status == 503
    offline = {"count": 1, "partitions": [f"{topic}-1"]}
    assert answer.json() == {
        "status": "degraded",
        "offline": offline,
        "failing": {"count": 0, "partitions": []},
    }
    assert http.metrics().value("millrace_partitions_offline") == 1
