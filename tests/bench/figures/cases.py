"""What is measured: each case puts one load on a running broker and returns its figures, by name.

A name ends in its unit; limits.py says what is asked of it.
"""

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from figures.machine import Meter, forget_peak, memory_mib
from harness.broker import Broker
from harness.wire import RawConnection

IDLE_SECONDS = 5
CONTROLLER_SECONDS_MAX = 30
"""Until there is another, where the one that was killed was the controller."""
OTHERS = "others %"
"""The share of the machine that neither broker nor client used, of the worst repetition."""

FLOOR = "the floor"
"""A plain program of one thread that receives, takes a crc and appends, or sends by sendfile, the same bytes in the same
requests over as many connections, and does nothing else, in the same minute: what is the machine's."""

BATCH_BYTES = 1_000_000
"""Of bench-load's batches, which fill up under load."""
IN_FLIGHT = 5
"""Requests of a client of librdkafka that the floor is compared with."""
SMALL_REQUEST_BYTES = 250
"""Of a produce with one record of 100 B."""
RAW_BYTES = 4e9
"""About so much is read over raw sockets, again and again: the processor's time is told in steps of 10 ms, in which a
broker sends 80 MB."""

Figures = dict[str, float]


@dataclass
class Bench:
    """A broker under load, and how much of the load: 1.0 is that of the published figures."""

    broker: Broker
    build: Path
    scale: float
    replicas = 1

    def __post_init__(self):
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    @property
    def address(self) -> str:
        return self.broker.address

    @property
    def pid(self) -> int:
        return self.broker.process.pid

    @property
    def pids(self) -> list[int]:
        return [self.pid]

    def log_tail(self) -> str:
        return self.broker.log_tail()

    def make_topic(self, name: str, partitions: int, **config: str) -> str:
        made = NewTopic(name, partitions, self.replicas,
                        config={key.replace("_", "."): value for key, value in config.items()})
        self.admin.create_topics([made])[name].result(60)
        return name

    def remove_topic(self, name: str) -> None:
        give_up_at = time.monotonic() + CONTROLLER_SECONDS_MAX
        asked_before = False
        while True:
            try:
                self.admin.delete_topics([name])[name].result(60)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if asked_before and code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return  # whoever was the controller had begun
                if code != KafkaError.NOT_CONTROLLER or time.monotonic() > give_up_at:
                    raise
            asked_before = True
            time.sleep(0.2)

    def load(self, mode: str, *flags: str, **options: object) -> Figures:
        """Runs bench-load; adds what the broker and others used meanwhile."""
        words = [*flags, *(f"--{name.replace('_', '-')}={value}" for name, value in options.items())]
        command = [self.build / "bin" / "bench-load", mode, f"--broker={self.address}", *words]
        meter = Meter(*self.pids)
        done = subprocess.run(command, capture_output=True, text=True)
        usage = meter.stop()
        if done.returncode != 0:
            raise SystemExit(f"{mode} {' '.join(words)}: {done.stderr}\n{self.log_tail()}")
        taken = json.loads(done.stdout)
        taken["broker_cpu_seconds"] = usage.broker_cpu_seconds
        taken[OTHERS] = usage.others_percent(taken["client_cpu_seconds"])
        return taken

    def largest_segment(self, topic: str) -> Path:
        return max(self.broker.folder.glob(f"*/{topic}-*/*.log"), key=lambda file: file.stat().st_size)

    def members(self) -> int:
        """Of all groups, ten in each."""
        return max(1, int(1000 * self.scale)) * 10

    def messages(self, full: int) -> int:
        return max(1000, int(full * self.scale))


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable[[Bench], Figures]
    alone: bool = False  # its limit needs no peer, which would take many minutes for it


def throughput(taken: Figures) -> Figures:
    return {
        "MB/s": taken["bytes"] / 1e6 / taken["seconds"],
        "broker CPU s/GB": taken["broker_cpu_seconds"] / (taken["bytes"] / 1e9),
        OTHERS: taken[OTHERS],
    }


def latencies(taken: Figures) -> Figures:
    return {
        "p50 ms": taken["p50_us"] / 1000,
        "p99 ms": taken["p99_us"] / 1000,
        "p99.9 ms": taken["p999_us"] / 1000,
        OTHERS: taken[OTHERS],
    }


def floor_of_appends(bench: Bench, **options: object) -> float:
    """CPU seconds per request of the floor."""
    taken = bench.load("plain-append", file=bench.broker.folder / "floor", **options)
    return taken["server_cpu_seconds"] / taken["messages"]


def idle(bench: Bench, seconds: float = IDLE_SECONDS) -> Figures:
    meter = Meter(*bench.pids)
    time.sleep(seconds)
    usage = meter.stop()
    return {
        "resident MiB": sum(memory_mib(pid, "VmRSS") for pid in bench.pids),
        "% of a core": 100 * usage.broker_cpu_seconds / usage.seconds,
        OTHERS: usage.others_percent(0),
    }


def warm_up(bench: Bench) -> Figures:
    """So that a broker whose code is compiled while it runs is measured at its best."""
    topic = bench.make_topic("warm-up", 4)
    count = bench.messages(1_000_000)
    bench.load("produce", topic=topic, partitions=4, messages=count, bytes=500)
    bench.load("consume", topic=topic, partitions=4, messages=count)
    bench.load("small", topic=topic, partitions=4, connections=8, depth=4, seconds=4)
    bench.remove_topic(topic)
    forget_peak(bench.pid)
    return {}


def produce(size: int, full: int, partitions: int, compression: str = "none"):
    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"produce-{size}-{partitions}-{compression}", partitions)
        taken = bench.load("produce", topic=topic, partitions=partitions, bytes=size,
                           messages=bench.messages(full), compression=compression)
        bench.remove_topic(topic)
        figures = throughput(taken)
        if compression != "none" or bench.replicas > 1:
            return figures
        each = floor_of_appends(bench, connections=1, depth=IN_FLIGHT, partitions=partitions, bytes=BATCH_BYTES,
                                messages=max(100, int(taken["bytes"] / BATCH_BYTES)))
        return figures | {f"{FLOOR}, CPU s/GB": each / (BATCH_BYTES / 1e9)}

    return run


def scattered(partitions: int, full: int):
    """Each message to a random partition: batches are as small as they come."""

    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"scattered-{partitions}", partitions)
        taken = bench.load("produce", "--scatter", topic=topic, partitions=partitions, bytes=1024, acks=1,
                           messages=bench.messages(full))
        bench.remove_topic(topic)
        return throughput(taken)

    return run


def read_back(size: int, full: int, partitions: int):
    """One topic, written once, read by a client and by raw connections."""

    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"consume-{size}-{partitions}", partitions)
        count = bench.messages(full)
        bench.load("produce", topic=topic, partitions=partitions, bytes=size, messages=count)
        client = throughput(
            bench.load("consume", topic=topic, partitions=partitions, messages=count))
        passes = max(1, round(RAW_BYTES / (count * size)))
        raw = throughput(
            bench.load("raw-fetch", topic=topic, partitions=partitions, connections=2, passes=passes))
        segment = bench.largest_segment(topic)
        plain = bench.load("plain-fetch", file=segment, connections=2,
                           passes=max(1, round(RAW_BYTES / segment.stat().st_size)))
        bench.remove_topic(topic)
        others = max(client.pop(OTHERS), raw.pop(OTHERS))
        return (
            {f"client, {name}": value for name, value in client.items()}
            | {f"raw, {name}": value for name, value in raw.items()}
            | {f"{FLOOR}, CPU s/GB": plain["server_cpu_seconds"] / (plain["bytes"] / 1e9)}
            | {OTHERS: others}
        )

    return run


def end_to_end(per_second: int):
    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"e2e-{per_second}", 1)
        taken = bench.load("e2e", topic=topic, bytes=100, per_second=per_second, seconds=8)
        bench.remove_topic(topic)
        plain = bench.load("plain-e2e", file=bench.broker.folder / "floor", bytes=SMALL_REQUEST_BYTES,
                           per_second=per_second, seconds=4)
        return latencies(taken) | {
            "broker CPU us/message": 1e6 * taken["broker_cpu_seconds"] / taken["messages"],
            f"{FLOOR}, CPU us/message": 1e6 * plain["server_cpu_seconds"] / plain["messages"],
        }

    return run


def small(connections: int, depth: int):
    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"small-{connections}-{depth}", connections)
        taken = bench.load("small", topic=topic, partitions=connections, connections=connections,
                           depth=depth, bytes=100, acks=1, seconds=4)
        bench.remove_topic(topic)
        each = floor_of_appends(bench, connections=connections, depth=depth, partitions=connections,
                                bytes=SMALL_REQUEST_BYTES, seconds=4)
        figures = {
            "requests/s": taken["messages"] / taken["seconds"],
            "broker CPU us/request": 1e6 * taken["broker_cpu_seconds"] / taken["messages"],
            f"{FLOOR}, CPU us/request": 1e6 * each,
        }
        return figures | latencies(taken)

    return run


def flushed(connections: int):
    """Each request waits for a sync of its partition's log; those that come meanwhile share the next."""

    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"flushed-{connections}", 1, flush_messages="1")
        taken = bench.load("small", topic=topic, partitions=1, connections=connections, depth=1,
                           bytes=100, acks="all", seconds=4)
        bench.remove_topic(topic)
        return {"requests/s": taken["messages"] / taken["seconds"]} | latencies(taken)

    return run


def peak(bench: Bench) -> Figures:
    return {"peak resident MiB": memory_mib(bench.pid, "VmHWM")}


def idle_connections(bench: Bench) -> Figures:
    """Each has asked once, and then says nothing."""
    with ExitStack() as open_ones:
        for _ in range(1000):
            open_ones.enter_context(RawConnection(bench.broker.address)).ask_api_versions()
        return idle(bench)


def idle_partitions(bench: Bench) -> Figures:
    started = time.monotonic()
    topic = bench.make_topic("many", 1000)
    created = time.monotonic() - started
    figures = {"created in s": created} | idle(bench)
    bench.remove_topic(topic)
    return figures


def group_heartbeats(mode: str):
    """What the broker uses once ten thousand members have settled."""

    def run(bench: Bench) -> Figures:
        topic = bench.make_topic(f"{mode}-members", 10)
        command = [bench.build / "bin" / "bench-load", f"{mode}-heartbeats",
                   f"--broker={bench.broker.address}", f"--topic={topic}",
                   f"--messages={bench.members()}", "--connections=250", "--seconds=15"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as driver:
            ready = driver.stdout.readline()
            meter = Meter(bench.pid)
            told = driver.stdout.readline()
            usage = meter.stop()
            errors = driver.stderr.read()
        if ready != "ready\n" or driver.returncode != 0:
            raise SystemExit(f"{mode} heartbeats: {errors}\n{bench.broker.log_tail()}")
        taken = json.loads(told)
        return {
            "heartbeats/s": taken["messages"] / taken["seconds"],
            "broker CPU us/request": 1e6 * usage.broker_cpu_seconds / taken["messages"],
            "% of a core": 100 * usage.broker_cpu_seconds / usage.seconds,
            OTHERS: usage.others_percent(taken["client_cpu_seconds"]),
        }

    return run


CASES = [
    Case("idle", idle),
    Case("warm-up", warm_up),
    Case("produce 100 B, P=1", produce(100, 2_000_000, 1)),
    Case("produce 100 B, P=12", produce(100, 2_000_000, 12)),
    Case("produce 1 KiB, P=1", produce(1024, 600_000, 1)),
    Case("produce 1 KiB, P=12", produce(1024, 600_000, 12)),
    Case("produce 1 KiB gzip, P=1", produce(1024, 100_000, 1, "gzip")),
    Case("produce 1 KiB snappy, P=1", produce(1024, 300_000, 1, "snappy")),
    Case("produce 1 KiB lz4, P=1", produce(1024, 300_000, 1, "lz4")),
    Case("produce 1 KiB zstd, P=1", produce(1024, 200_000, 1, "zstd")),
    Case("produce 100 KiB, P=1", produce(102_400, 6_000, 1)),
    Case("produce 100 KiB, P=12", produce(102_400, 6_000, 12)),
    Case("1,000 partitions, each message to a random one", scattered(1000, 300_000)),
    Case("consume 100 B, P=1", read_back(100, 4_000_000, 1)),
    Case("consume 1 KiB, P=1", read_back(1024, 1_000_000, 1)),
    Case("consume 1 KiB, P=12", read_back(1024, 1_000_000, 12)),
    Case("end to end, 1,000/s", end_to_end(1000)),
    Case("end to end, 10,000/s", end_to_end(10_000)),
    Case("small requests, 8 connections, depth 1", small(8, 1)),
    Case("small requests, 8 connections, depth 16", small(8, 16)),
    Case("small requests, 1 connection, depth 1", small(1, 1)),
    Case("flush.messages=1, 1 connection", flushed(1)),
    Case("flush.messages=1, 16 connections", flushed(16)),
    Case("memory under load", peak),
    Case("group heartbeats, classic", group_heartbeats("classic"), alone=True),
    Case("group heartbeats, consumer", group_heartbeats("consumer"), alone=True),
    Case("1,000 idle connections", idle_connections),
    Case("1,000 idle partitions", idle_partitions),
]
