"""What is made once for all tests is made by one of the processes that run them beside each other."""

import fcntl
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def making(folder: Path):
    """Nobody else makes `folder` meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
