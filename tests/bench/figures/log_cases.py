"""What a log of its size asks of a broker: one that is read long after it was written, and ten thousand of them."""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from figures.cases import OTHERS, Bench, Case, Figures, idle
from figures.machine import Meter, memory_mib

COLD_BYTES = 2_000_000_000
MESSAGE_BYTES = 1024
TAIL_PER_SECOND = 1000
TAIL_SECONDS = 12

PARTITIONS = 10_000
MESSAGES_EACH = 10
SERVED_SECONDS_MAX = 300
STOP_SECONDS_MAX = 120
SETTLE_SECONDS = 3


# ---- a reader of old records beside a tail ----


@dataclass
class Reading:
    """What readers that ran one after another came to."""

    bytes: int = 0
    seconds: float = 0
    client_cpu_seconds: float = 0


def forget(folder: Path, topic: str) -> None:
    """Takes the topic's files, and no others, out of the page cache."""
    for log in folder.glob(f"*/{topic}-0/*.log"):
        descriptor = os.open(log, os.O_RDWR)
        os.fsync(descriptor)  # what is not on the disk stays
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def launch(bench: Bench, mode: str, topic: str, **options: object) -> subprocess.Popen:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [bench.build / "bin" / "bench-load", mode, f"--broker={bench.address}",
               f"--topic={topic}", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def figures_of(bench: Bench, process: subprocess.Popen) -> Figures:
    out, errors = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{process.args}: {errors}\n{bench.log_tail()}")
    return json.loads(out)


def tail(bench: Bench, name: str, old_topic: str | None, cold: bool = False) -> tuple[Figures, Reading]:
    """A tail of its own topic, and beside it readers of the old one, over and over until it ends."""
    topic = bench.make_topic(name, 1)
    read = Reading()
    if old_topic and cold:
        forget(bench.broker.folder, old_topic)
    meter = Meter(*bench.pids)
    tailing = launch(bench, "e2e", topic, bytes=100, per_second=TAIL_PER_SECOND,
                     seconds=TAIL_SECONDS)
    while old_topic and tailing.poll() is None:
        reader = launch(bench, "raw-fetch", old_topic, connections=1)
        while reader.poll() is None and tailing.poll() is None:
            time.sleep(0.01)
        if reader.poll() is None:
            reader.kill()
            reader.communicate()
            break
        taken = figures_of(bench, reader)
        read.bytes += int(taken["bytes"])
        read.seconds += taken["seconds"]
        read.client_cpu_seconds += taken["client_cpu_seconds"]
        if cold:
            forget(bench.broker.folder, old_topic)
    taken = figures_of(bench, tailing)
    usage = meter.stop()
    taken["broker_cpu_seconds"] = usage.broker_cpu_seconds
    taken[OTHERS] = usage.others_percent(taken["client_cpu_seconds"] + read.client_cpu_seconds)
    bench.remove_topic(topic)
    return taken, read


def tail_beside_reader(bench: Bench) -> Figures:
    """Read from the page cache it shows what the processor that the reader takes costs the tail; read from the
    disk, what the disk does."""
    old = bench.make_topic("old", 1)
    count = max(10_000, int(COLD_BYTES / MESSAGE_BYTES * bench.scale))
    bench.load("produce", topic=old, partitions=1, bytes=MESSAGE_BYTES, messages=count)
    alone, _ = tail(bench, "tail-alone", None)
    warm, warm_read = tail(bench, "tail-beside-warm", old)
    cold, cold_read = tail(bench, "tail-beside-cold", old, cold=True)
    bench.remove_topic(old)
    figures = {}
    for name, taken in (("alone", alone), ("warm", warm), ("cold", cold)):
        figures[f"{name}, p50 ms"] = taken["p50_us"] / 1000
        figures[f"{name}, p99 ms"] = taken["p99_us"] / 1000
        figures[f"{name}, max ms"] = taken["max_us"] / 1000
        figures[f"{name}, broker CPU s"] = taken["broker_cpu_seconds"]
    for name, read in (("warm", warm_read), ("cold", cold_read)):
        # 0: none came to its end while the tail ran
        figures[f"{name}, reader MB/s"] = read.bytes / 1e6 / read.seconds if read.seconds else 0
    figures["cold, p99 times alone"] = cold["p99_us"] / alone["p99_us"]
    figures["cold, p99 times warm"] = cold["p99_us"] / warm["p99_us"]
    return figures | {OTHERS: alone[OTHERS]}


# ---- ten thousand partitions ----


def write_to_each(bench: Bench, topic: str, partitions: int) -> None:
    failed = []
    producer = Producer({"bootstrap.servers": bench.address, "log_level": 2, "linger.ms": 100,
                         "message.timeout.ms": 120_000,
                         "queue.buffering.max.messages": partitions * MESSAGES_EACH + 1})
    for _ in range(MESSAGES_EACH):
        for partition in range(partitions):
            producer.produce(topic, b"x" * 100, partition=partition,
                             on_delivery=lambda error, _: failed.append(error) if error else None)
        producer.poll(0)
    if producer.flush(120) or failed:
        raise SystemExit(f"{len(failed)} messages were not stored: {failed[:1]}\n{bench.log_tail()}")


def wait_until_served(bench: Bench, topic: str, partitions: int) -> None:
    """Each of them answers where it ends."""
    give_up_at = time.monotonic() + SERVED_SECONDS_MAX
    latest = OffsetSpec.latest()
    while True:
        asked = bench.admin.list_offsets(
            {TopicPartition(topic, partition): latest for partition in range(partitions)})
        try:
            for answer in asked.values():
                answer.result(60)
            return
        except Exception as error:
            if time.monotonic() > give_up_at:
                raise SystemExit(f"{topic} is not served: {error}\n{bench.log_tail()}") from error
            time.sleep(0.02)


def restart(bench: Bench, topic: str, partitions: int) -> Figures:
    started = time.monotonic()
    bench.broker.start()
    ready = time.monotonic() - started
    used = Meter(bench.pid).broker
    wait_until_served(bench, topic, partitions)
    served = time.monotonic() - started
    return {"ready in s": ready, "CPU s": used, "all served in s": served,
            "until all served, CPU s": Meter(bench.pid).broker}


def many_partitions(bench: Bench) -> Figures:
    count = max(100, int(PARTITIONS * bench.scale))
    started = time.monotonic()
    topic = bench.make_topic("ten-thousand", count)
    figures = {"created in s": time.monotonic() - started}
    write_to_each(bench, topic, count)
    at_rest = idle(bench)
    figures["resident MiB"] = memory_mib(bench.pid, "VmRSS")
    figures["idle, % of a core"] = at_rest["% of a core"]
    figures["descriptors"] = len(os.listdir(f"/proc/{bench.pid}/fd"))
    bench.broker.stop_seconds_max = STOP_SECONDS_MAX
    _, figures["stopped in s"] = bench.broker.stop()
    clean = restart(bench, topic, count)
    figures |= {f"after a stop, {name}": value for name, value in clean.items()}
    time.sleep(SETTLE_SECONDS)  # what was opened is brought to disk meanwhile, where that is due
    at_rest = idle(bench)
    figures["after a stop, resident MiB"] = at_rest["resident MiB"]
    figures["after a stop, idle, % of a core"] = at_rest["% of a core"]
    write_to_each(bench, topic, count)
    bench.broker.kill()
    killed = restart(bench, topic, count)
    figures |= {f"after a kill, {name}": value for name, value in killed.items()}
    figures["after a kill, resident MiB"] = memory_mib(bench.pid, "VmRSS")
    bench.remove_topic(topic)
    return figures | {OTHERS: at_rest[OTHERS]}


# ---- a start after a kill ----

RECOVERED_BYTES = 5_000_000_000
RECOVERED_PARTITIONS = 12


def recovery(bench: Bench) -> Figures:
    topic = bench.make_topic("recovered", RECOVERED_PARTITIONS)
    count = max(10_000, int(RECOVERED_BYTES / MESSAGE_BYTES * bench.scale))
    bench.load("produce", topic=topic, partitions=RECOVERED_PARTITIONS, bytes=MESSAGE_BYTES, messages=count)
    bench.broker.kill()
    figures = restart(bench, topic, RECOVERED_PARTITIONS)
    bench.remove_topic(topic)
    return figures


LOG_CASES = [
    Case("a tail beside a reader of old records", tail_beside_reader),
    Case("recovery of 5 GB after a kill", recovery),
    Case("10,000 partitions", many_partitions, alone=True),
]
