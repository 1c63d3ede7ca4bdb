"""Waiting for a state, with a deadline."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOOK_SECONDS = 0.05
_never = threading.Event()


def until(condition: Callable[[], T], seconds: float, what: str) -> T:
    """What `condition` answers once that is something; fails with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        _never.wait(LOOK_SECONDS)  # the pause between two looks
    return found


def pass_time(seconds: float) -> None:
    """A fault lasts so long: there is nothing to wait for."""
    _never.wait(seconds)
