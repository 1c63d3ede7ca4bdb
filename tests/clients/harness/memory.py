"""What a broker takes of the machine's memory."""

from collections.abc import Callable
from pathlib import Path


def peak_bytes(broker, what: Callable[[], None]) -> int:
    """By how much the broker's resident memory grew, at most, while `what` was done."""
    process = Path(f"/proc/{broker.process.pid}")

    def kib(name: str) -> int:
        line = next(x for x in (process / "status").read_text().splitlines() if x.startswith(name))
        return int(line.split()[1])

    before = kib("VmRSS")
    (process / "clear_refs").write_text("5")  # the peak begins anew
    what()
    return (kib("VmHWM") - before) * 1024
