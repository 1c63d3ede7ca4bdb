"""The daemon as a service manager meets it: what it is told by the protocol of sd_notify(3), when, and
what the journal gets."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from itertools import count
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from harness.broker import Millrace, free_port
from harness.client import ClientError
from harness.confluent import Confluent, create_topic
from harness.plugin_files import install, install_damaged
from harness.records import Record
from harness.streams import STEPS, Streams
from harness.tool import Tool
from harness.wire import RawConnection

pytestmark = pytest.mark.millrace

DATAGRAM_SECONDS_MAX = 30
WATCHDOG_SECONDS = 2
CANNOT_CREATE = 73
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
NUMBERS = count()


class Supervised(Millrace):
    """Started as by systemd, whose part is the test's."""

    def __init__(self, folder: Path, config: Path | None = None, **more):
        super().__init__(folder, **more)
        self.config = config
        self.told: list[str] = []
        name = f"millrace-test-{os.getpid()}-{next(NUMBERS)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name)
        self.log_path.touch()
        log = self.log_path.stat()
        self.journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.journal.bind(f"\0{name}-journal")
        self.variables = {
            "NOTIFY_SOCKET": f"@{name}",
            "MILLRACE_JOURNAL_SOCKET": "",
            "WATCHDOG_USEC": WATCHDOG_SECONDS * 1_000_000,
            "JOURNAL_STREAM": f"{log.st_dev}:{log.st_ino}",
        }

    def command(self) -> list[str]:
        program, *words = super().command()
        if self.config:
            words = ["--config", str(self.config), *words]
        return ["env", *(f"{key}={value}" for key, value in self.variables.items()), program, *words]

    def begin(self) -> "Supervised":
        """Starts it and waits for nothing."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        return self

    def wait_told(self, start: str) -> str:
        """The next line that begins so; all that come are kept."""
        deadline = time.monotonic() + DATAGRAM_SECONDS_MAX
        while True:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                lines = self.socket.recv(4096).decode().split("\n")
            except TimeoutError:
                raise AssertionError(
                    f"not told {start}, only {self.told}:\n{self.log_tail()}"
                ) from None
            self.told += lines
            for line in lines:
                if line.startswith(start):
                    return line

    def is_silent(self) -> bool:
        """But for what was under way no beat comes in the time after which systemd would end it."""
        self.socket.settimeout(WATCHDOG_SECONDS)
        beats = 0
        try:
            while beats < 5:
                beats += b"WATCHDOG=1" in self.socket.recv(4096)
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        super().close()
        self.socket.close()
        self.journal.close()


@pytest.fixture
def broker(tmp_path):
    one = Supervised(tmp_path / "broker")
    yield one
    one.close()


def test_it_is_ready_when_it_serves_and_says_that_it_stops(broker):
    broker.begin().wait_told("READY=1")
    create_topic(broker.address, "orders", 3)
    broker.wait_told("STATUS=serving 3 partitions")
    assert broker.told[0].startswith("EXTEND_TIMEOUT_USEC="), broker.told
    assert "STOPPING=1" not in broker.told
    assert broker.stop()[0] == 0
    broker.wait_told("STOPPING=1")
    broker.wait_told("STATUS=stopping")


def test_a_recovery_says_how_far_it_is(broker):
    """What one log waits for is a file that never ends."""
    create_topic(broker.start().address, "orders", 3)
    broker.kill()
    held_up = broker.folder / "data" / "orders-1" / "leader-epoch-checkpoint"
    held_up.unlink(missing_ok=True)
    os.mkfifo(held_up)

    broker.begin()
    broker.wait_told("STATUS=recovering 2 of 3 logs")
    assert broker.told[-2].startswith("EXTEND_TIMEOUT_USEC="), broker.told
    assert broker.stop()[0] == 0


def test_why_a_start_failed_is_told(tmp_path):
    one = Supervised(tmp_path / "broker", settings={"broker.data": "/proc/no/such"})
    try:
        one.begin()
        assert "/proc/no/such" in one.wait_told("STATUS=could not start: ")
        assert one.process.wait(timeout=DATAGRAM_SECONDS_MAX) == CANNOT_CREATE
        assert "READY=1" not in one.told
    finally:
        one.close()


def test_a_process_that_is_stopped_has_no_heartbeat(broker):
    broker.begin().wait_told("READY=1")
    broker.wait_told("WATCHDOG=1")
    broker.process.send_signal(signal.SIGSTOP)
    assert broker.is_silent()
    broker.process.send_signal(signal.SIGCONT)
    broker.wait_told("WATCHDOG=1")


def ptrace(request: int, thread: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(request, thread, None, None) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.parametrize("name", ["mr-shard-1", "mr-control"])
def test_a_thread_that_is_stuck_ends_the_heartbeat_and_is_named(broker, name):
    broker.begin().wait_told("READY=1")
    tasks = Path(f"/proc/{broker.process.pid}/task")
    threads = {(task / "comm").read_text().strip(): int(task.name) for task in tasks.iterdir()}
    broker.wait_told("WATCHDOG=1")
    ptrace(PTRACE_SEIZE, threads[name])
    ptrace(PTRACE_INTERRUPT, threads[name])
    os.waitpid(threads[name], 0x40000000)  # __WALL
    assert broker.is_silent()
    broker.wait_for_log_line("a thread does not turn", f"threads={name} ")
    ptrace(PTRACE_DETACH, threads[name])
    broker.wait_told("WATCHDOG=1")
    broker.wait_for_log_line("all threads turn again")
    assert broker.stop()[0] == 0


def test_a_reload_is_told_and_says_what_needs_a_restart(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text("")
    one = Supervised(tmp_path / "broker", config)
    try:
        one.begin().wait_told("READY=1")
        config.write_text('[broker]\nmemory = 300000000\n[log]\nlevel = "debug"\nformat = "json"\n')
        before = time.monotonic_ns() // 1000
        one.process.send_signal(signal.SIGHUP)
        one.wait_told("RELOADING=1")
        at = int(one.told[-1].removeprefix("MONOTONIC_USEC="))
        assert before <= at <= time.monotonic_ns() // 1000
        one.wait_told("READY=1")
        one.wait_for_log_line("log levels are as configured now")
        one.wait_for_log_line("count from the next start", 'options="broker.memory, log.format"')
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_in_the_journal_lines_have_a_priority_and_no_time(broker):
    broker.begin().wait_told("READY=1")
    assert broker.stop()[0] == 0
    lines = broker.log_text().splitlines()
    assert lines
    assert all(line.startswith(("<6>INFO  ", "<4>WARN  ")) for line in lines), lines


def test_entries_of_the_journal_have_fields(broker):
    broker.variables["MILLRACE_JOURNAL_SOCKET"] = f"{broker.variables['NOTIFY_SOCKET']}-journal"
    broker.begin()
    broker.journal.settimeout(DATAGRAM_SECONDS_MAX)
    while True:
        fields = dict(line.split("=", 1) for line in broker.journal.recv(65536).decode().splitlines())
        if fields["MESSAGE"].startswith("INFO  broker: listening") and "kafka" in fields["MESSAGE"]:
            break
    assert fields["PRIORITY"] == "6"
    assert fields["MILLRACE_TRANSPORT"] == "kafka"
    assert fields["MILLRACE_ADDRESS"] == broker.address
    broker.wait_told("READY=1")
    assert broker.stop()[0] == 0
    assert broker.log_text() == ""


STAMPS = """
[stream.stamps]
sources = ["in"]
sink = "out"
[[stream.stamps.steps]]
operator = "stamp"
"""


class Reloaded:
    """A broker whose configuration and plugins a test changes, as packages and people do."""

    def __init__(self, folder: Path, broker: Supervised):
        self.broker = broker
        self.declared = folder / "conf.d" / "stamps.toml"
        self.file = folder / "plugins" / "operators" / "stamp.so"
        self.declared.parent.mkdir()
        self.file.parent.mkdir(parents=True)  # a folder of plugins that is there, and empty

    def install(self, version: str) -> None:
        install(STEPS / "operators" / f"stamp_{version}.so", self.file)

    def reload(self) -> str:
        """What the STATUS that the service manager is told says of it."""
        self.broker.told.clear()
        self.broker.process.send_signal(signal.SIGHUP)
        self.broker.wait_told("RELOADING=1")
        self.broker.wait_told("READY=1")
        told = [line for line in self.broker.told if line.startswith("STATUS=")]
        return told[-1].partition("; ")[2] if told else ""


@pytest.fixture
def reloaded(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text(f'[plugins]\npath = ["{tmp_path}/plugins"]\n')
    one = Supervised(tmp_path / "broker", config)
    try:
        made = Reloaded(tmp_path, one)
        one.begin().wait_told("READY=1")
        yield made
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_a_plugin_is_dropped_in_upgraded_and_taken_out_by_reloads(reloaded):
    broker = reloaded.broker
    client = Confluent(broker.address)
    for topic in ("in", "out"):
        client.create_topic(topic, 1)
    streams = Streams(broker)

    def answer(number: int, value: bytes, expected: bytes) -> None:
        client.produce("in", [Record(b"k", value, partition=0)])
        streams.wait_for_position("stamps", number)
        assert client.read("out", 0)[-1].value == expected

    reloaded.install("one")
    reloaded.declared.write_text(STAMPS)
    assert reloaded.reload() == ""
    broker.wait_for_log_line("SIGHUP: done", "stream stamps: started")
    answer(1, b"a", b"one:1:a")

    # Its state and its position stay.
    reloaded.install("two")
    assert reloaded.reload() == ""
    broker.wait_for_log_line("SIGHUP: done", "stream stamps: operator stamp replaced")
    answer(2, b"b", b"two:2:b")
    lines = broker.log_text().count("SIGHUP: done")
    assert reloaded.reload() == "" and broker.log_text().count("SIGHUP: done") == lines

    reloaded.declared.unlink()
    assert reloaded.reload() == ""
    broker.wait_for_log_line("SIGHUP: done", "stream stamps: ended")
    assert streams.http.ask("GET", "/admin/streams/stamps").status == 404
    client.close()


def test_a_reload_of_something_wrong_changes_nothing(reloaded):
    broker = reloaded.broker
    streams = Streams(broker)
    reloaded.install("one")
    reloaded.declared.write_text(STAMPS)
    reloaded.reload()

    def refused(said: str) -> None:
        assert said in reloaded.reload()
        broker.wait_for_log_line("nothing was changed", said)
        assert streams.describe("stamps")["steps"][0]["path"] == str(reloaded.file)
        assert streams.http.get("/admin/log-level")["level"] == "info"

    wrong = STAMPS + '[log]\nlevel = "debug"\n[stream.more]\nsources = ["in"]\n[[stream.more.steps]]\n'
    reloaded.declared.write_text(wrong + 'operator = "stamq"\n')
    refused("nearest known: stamp")
    # A file whose code ends whoever maps it.
    install_damaged(STEPS / "operators" / "pass.so", reloaded.file.with_name("hurt.so"))
    reloaded.declared.write_text(wrong + 'operator = "hurt"\n')
    refused("a process that loads it ends by SIG")
    reloaded.file.with_name("hurt.so").unlink()
    reloaded.file.unlink()
    reloaded.file.write_bytes(b"\x7fELF, and no more")
    reloaded.declared.write_text(STAMPS)
    refused("stamp.so: truncated")
    broker.assert_running()


def test_what_waits_for_a_restart_is_shown_by_the_status(reloaded):
    reloaded.declared.write_text('[compression]\nplugins = ["gzip"]\n')
    status = reloaded.reload()
    assert status.startswith("from the next start: ")
    for word in ("plugin compression/zstd ends", "compression.plugins"):
        assert word in status
        reloaded.broker.wait_for_log_line("count from the next start", word)


def test_a_reload_makes_topics_that_are_declared_and_says_where_one_differs(reloaded):
    broker = reloaded.broker
    client = Confluent(broker.address)
    reloaded.declared.write_text("[topic.orders]\npartitions = 3\n")
    assert reloaded.reload() == ""
    broker.wait_for_log_line("SIGHUP: done", "topic orders: made")
    assert client.partition_count("orders") == 3
    reloaded.declared.write_text("[topic.orders]\npartitions = 5\n[topic.more]\n")
    assert reloaded.reload() == "topic orders stays as it is: partitions is 3, declared 5"
    broker.wait_for_log_line("differs from its declaration", "topic=orders")
    assert client.partition_count("orders") == 3
    assert client.partition_count("more") == 1
    assert reloaded.reload() == ""  # it has been told
    client.close()


def test_defaults_that_are_looked_up_anew_count_after_a_reload(reloaded):
    client = Confluent(reloaded.broker.address)
    client.create_topic("orders", 1)
    client.produce("orders", [Record(b"k", b"x" * 2000, partition=0)])
    reloaded.declared.write_text(
        '[defaults]\n"message.max.bytes" = 1000\n"num.partitions" = 4\n"num.replica.fetchers" = 2\n'
    )
    status = reloaded.reload()
    assert status == 'from the next start: defaults."num.replica.fetchers"'
    reloaded.broker.wait_for_log_line("SIGHUP: done", "message.max.bytes counts now")
    with pytest.raises(ClientError):
        client.produce("orders", [Record(b"k", b"x" * 2000, partition=0)])
    tool = Tool(reloaded.broker.address)
    tool.text("topic", "create", "more")
    assert client.partition_count("more") == 4
    client.close()


def send_compressed(broker: Millrace, codec: str) -> ck.KafkaError | None:
    outcome: list[ck.KafkaError | None] = []
    producer = ck.Producer({"bootstrap.servers": broker.address, "compression.type": codec})
    producer.produce("packed", b"x" * 2000, partition=0, on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(DATAGRAM_SECONDS_MAX) == 0
    return outcome[0]


def test_a_codec_that_is_new_is_used_after_a_reload_and_one_that_is_gone_until_the_next_start(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text('[compression]\nplugins = ["gzip"]\n')
    one = Supervised(tmp_path / "broker", config)
    reloaded = Reloaded(tmp_path, one)
    try:
        one.begin().wait_told("READY=1")
        create_topic(one.address, "packed", 1)
        assert send_compressed(one, "zstd").code() == ck.KafkaError.UNSUPPORTED_COMPRESSION_TYPE
        config.write_text('[compression]\nplugins = ["gzip", "zstd"]\n')
        assert reloaded.reload() == ""
        one.wait_for_log_line("SIGHUP: done", "plugin compression/zstd: started")
        assert send_compressed(one, "zstd") is None
        config.write_text('[compression]\nplugins = ["zstd"]\n')
        status = reloaded.reload()
        assert status.startswith("from the next start: plugin compression/gzip ends, ")
        assert "compression.plugins" in status
        assert send_compressed(one, "gzip") is None
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_transports_begin_and_end_by_reloads_and_clients_are_told(reloaded):
    broker = reloaded.broker
    inner = f"127.0.0.1:{free_port()}"
    table = '[transport.inner]\nplugin = "kafka"\n'

    def brokers(bootstrap: str) -> list[str]:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        found = admin.list_topics(timeout=DATAGRAM_SECONDS_MAX).brokers.values()
        return [f"{one.host}:{one.port}" for one in found]

    reloaded.declared.write_text(f'{table}listen = "{broker.address}"\n[topic.late]\n')
    assert "set transport.inner.listen" in reloaded.reload()
    broker.wait_for_log_line("nothing was changed", "set transport.inner.listen")

    reloaded.declared.write_text(f'{table}listen = "{inner}"\n')
    assert reloaded.reload() == ""
    broker.wait_for_log_line("SIGHUP: done", "plugin transport/inner: started")
    # Each listener tells of itself.
    assert brokers(inner) == [inner] and brokers(broker.address) == [broker.address]
    client = Confluent(inner)
    client.create_topic("orders", 1)
    client.produce("orders", [Record(b"k", b"v", partition=0)])
    assert client.read("orders", 0)[-1].value == b"v"
    client.close()
    assert Confluent(broker.address).partition_count("orders") == 1
    with pytest.raises(ClientError):
        Confluent(broker.address).partition_count("late")

    reloaded.declared.write_text(f'{table}listen = "{inner}"\n"max.connections" = 7\n')
    assert reloaded.reload() == 'from the next start: transport.inner."max.connections"'
    # Whoever is connected is let go.
    with RawConnection(inner) as connected:
        connected.ask_api_versions()
        reloaded.declared.unlink()
        assert reloaded.reload() == ""
        assert connected.closed_by_broker()
    broker.wait_for_log_line("SIGHUP: done", "transport inner: ended")
    with pytest.raises(ConnectionRefusedError):
        RawConnection(inner)
    facts = Streams(broker).http.get("/admin/plugins")
    assert "inner" not in str(facts)
    # And back again, as before.
    reloaded.declared.write_text(f'{table}listen = "{inner}"\n')
    assert reloaded.reload() == ""
    assert brokers(inner) == [inner]


def test_an_aggregate_goes_on_as_its_upgraded_plugin_and_one_that_does_not_fit_is_told(tmp_path):
    versions = STEPS.parent / "aggregates" / "operators"
    file = tmp_path / "plugins" / "operators" / "tally.so"
    install(versions / "tally.so", file)
    config = tmp_path / "millrace.toml"
    config.write_text(f'[plugins]\npath = ["{tmp_path}/plugins"]\n[operators]\nplugins = ["tally"]\n')
    one = Supervised(tmp_path / "broker", config)

    def add(number: int) -> str:
        deadline = time.monotonic() + DATAGRAM_SECONDS_MAX
        while True:  # its topic is made, and loaded
            answer = Streams(one).http.ask("POST", "/admin/aggregates/tally/k", {"command": f"add {number}"})
            if answer.status != 503 or time.monotonic() > deadline:
                return answer.json()["answer"]

    def runs() -> str:
        plugins = Streams(one).http.get("/admin/plugins")["plugins"]
        (tally,) = (plugin for plugin in plugins if plugin["instance"] == "tally")
        assert tally["path"] == str(file), "where the next start finds it too"
        return tally["version"]

    def reload() -> None:
        one.process.send_signal(signal.SIGHUP)
        one.wait_told("RELOADING=1")
        one.wait_told("READY=1")

    try:
        one.begin().wait_told("READY=1")
        assert add(5) == "one:5" and runs() == "one"
        install(versions / "tally_two.so", file)
        reload()
        one.wait_for_log_line("SIGHUP: done", "aggregate tally: replaced by version two")
        assert add(7) == "two:12" and runs() == "two"
        install(versions / "tally_cannot_read.so", file)
        reload()
        one.wait_for_log_line("SIGHUP: not done", "cannot go on from what is there")
        assert add(1) == "two:13" and runs() == "two"
        assert one.stop()[0] == 0
    finally:
        one.close()
