"""Small requests beside five thousand connections, of which many read nothing, or send slowly, or ask for very much;
beside a hundred that read large answers as fast as they come; and beside one that sends batches as large as a request may be."""

import resource
import time

from figures.cases import OTHERS, Bench, Case, Figures
from figures.machine import Meter, forget_peak, memory_mib
from harness.batches import record_batch
from harness.crowd import HUGE_PART_BYTES, CrowdProcess, small_latencies
from harness.wire import RawConnection

CONNECTIONS = 5000
BUSY = {"unread": 400, "drip": 400, "trickle": 20, "huge": 2, "reader": 4, "pipeline": 4}
HUGE_PARTITIONS = 64
PER_SECOND = 400
ALONE_SECONDS, BESIDE_SECONDS = 5, 15
LEADER_SECONDS_MAX = 30
READERS, POLITE_BESIDE_READERS = 100, 400
PRODUCE_VERSION = 7


def fill(bench: Bench, topic: str, partitions: int, value_bytes: int) -> None:
    """A record in each: by then each has its leader."""
    batch = record_batch([bytes(value_bytes)])
    give_up_at = time.monotonic() + LEADER_SECONDS_MAX
    with RawConnection(bench.address) as connection:
        for partition in range(partitions):
            while error := connection.produce(topic, partition, batch, PRODUCE_VERSION):
                if time.monotonic() > give_up_at:
                    raise SystemExit(f"{topic}-{partition}: error {error}\n{bench.log_tail()}")


def client_cpu_seconds() -> float:
    of_all = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in of_all)


def told(name: str, latencies: list[float]) -> Figures:
    return {
        f"{name}, p50 ms": latencies[len(latencies) // 2],
        f"{name}, p99 ms": latencies[len(latencies) * 99 // 100],
        f"{name}, max ms": latencies[-1],
    }


def crowd(bench: Bench) -> Figures:
    small, huge = bench.make_topic("crowd-small", 8), bench.make_topic("crowd-huge", HUGE_PARTITIONS)
    fill(bench, small, 8, 100)
    fill(bench, huge, HUGE_PARTITIONS, HUGE_PART_BYTES)
    forget_peak(bench.pid)
    used, meter = client_cpu_seconds(), Meter(*bench.pids)
    alone = small_latencies(bench.address, small, ALONE_SECONDS, PER_SECOND)
    polite = CONNECTIONS - sum(BUSY.values())
    started = time.monotonic()
    with CrowdProcess(bench.address, small, huge, HUGE_PARTITIONS, polite=polite, **BUSY) as there:
        gathered = time.monotonic() - started
        beside = small_latencies(bench.address, small, BESIDE_SECONDS, PER_SECOND)
    usage = meter.stop()
    kinds = there.figures
    figures = {"all connected in s": gathered} | told("alone", alone) | told("beside", beside)
    figures |= {f"{kind}, slowest ms": 1000 * kinds[kind]["slowest"] for kind in ("polite", "pipeline")}
    figures |= {f"{kind}, answers": kinds[kind]["answers"] for kind in ("polite", "pipeline", "huge")}
    figures |= {f"{kind}, closed": kinds[kind]["closed"] for kind in ("polite", "unread", "drip", "trickle")}
    figures["peak resident MiB"] = memory_mib(bench.pid, "VmHWM")
    figures[OTHERS] = usage.others_percent(client_cpu_seconds() - used)
    for topic in (small, huge):
        bench.remove_topic(topic)
    return figures


def many_readers(bench: Bench) -> Figures:
    small, huge = bench.make_topic("readers-small", 8), bench.make_topic("readers-huge", HUGE_PARTITIONS)
    fill(bench, small, 8, 100)
    fill(bench, huge, HUGE_PARTITIONS, HUGE_PART_BYTES)
    used, meter = client_cpu_seconds(), Meter(*bench.pids)
    kinds = {"polite": POLITE_BESIDE_READERS, "reader": READERS}
    with CrowdProcess(bench.address, small, huge, HUGE_PARTITIONS, **kinds):
        beside = small_latencies(bench.address, small, BESIDE_SECONDS, PER_SECOND)
    usage = meter.stop()
    figures = told("beside", beside) | {OTHERS: usage.others_percent(client_cpu_seconds() - used)}
    for topic in (small, huge):
        bench.remove_topic(topic)
    return figures


def large_batches(bench: Bench) -> Figures:
    small, large = bench.make_topic("batches-small", 8), bench.make_topic("batches-large", 1, max_message_bytes="104857600")
    fill(bench, small, 8, 100)
    fill(bench, large, 1, 100)
    used, meter = client_cpu_seconds(), Meter(*bench.pids)
    with CrowdProcess(bench.address, small, large, 1, **{"polite": POLITE_BESIDE_READERS, "large batch": 1}) as there:
        beside = small_latencies(bench.address, small, BESIDE_SECONDS, PER_SECOND)
    usage = meter.stop()
    figures = told("beside", beside) | {"batches": there.figures["large batch"]["answers"]}
    figures[OTHERS] = usage.others_percent(client_cpu_seconds() - used)
    for topic in (small, large):
        bench.remove_topic(topic)
    return figures


CROWD_CASES = [
    Case("a crowd of 5,000 connections", crowd),
    Case("a hundred readers of large answers", many_readers),
    Case("one batch of 64 MB after the other", large_batches),
]
