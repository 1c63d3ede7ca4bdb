"""Reads what the machine and a process have used so far, from /proc."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MEBIBYTE = 1024 * 1024


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process, in user space and in the kernel; it advances in steps of 10 ms."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_SECOND


def memory_mib(pid: int, field: str) -> float:
    """`VmRSS` is what is resident now, `VmHWM` the most since forget_peak()."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def busy_seconds() -> float:
    """Of all processors together, since the machine was started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


@dataclass
class Usage:
    seconds: float
    broker_cpu_seconds: float
    machine_cpu_seconds: float

    def others_percent(self, client_cpu_seconds: float) -> float:
        """The share of the machine that neither the broker nor the client used."""
        others = self.machine_cpu_seconds - self.broker_cpu_seconds - client_cpu_seconds
        return max(0.0, 100 * others / (self.seconds * os.cpu_count()))


class Meter:
    """Usage between its making and stop(), of all processes of one broker or of a cluster's."""

    def __init__(self, *pids: int):
        self.pids = pids
        self.started = time.monotonic()
        self.broker = self._used()
        self.machine = busy_seconds()

    def stop(self) -> Usage:
        return Usage(
            time.monotonic() - self.started,
            self._used() - self.broker,
            busy_seconds() - self.machine,
        )

    def _used(self) -> float:
        return sum(map(cpu_seconds, self.pids))
