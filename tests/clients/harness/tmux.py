"""A terminal that somebody could sit at: a window of tmux, whose text is looked at."""

import os
import shlex
import subprocess
import time
from pathlib import Path

from harness.broker import PREFIX

SECONDS_MAX = 60


class Terminals:
    """A tmux server of our own, whose windows end with it."""

    def __init__(self, folder: Path):
        self._socket = folder / "tmux"
        self._count = 0

    def _tmux(self, *words: object) -> str:
        # Nothing of whoever runs the tests: neither their colours nor their window's width.
        left_out = ("NO_COLOR", "COLUMNS", "LINES", "TMUX")
        env = {name: value for name, value in os.environ.items() if name not in left_out}
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", "-S", str(self._socket), *map(str, words)],
            env={**env, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "SHELL": "/bin/sh"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def millrace(self, columns: int, *words: object, **variables: str) -> "Window":
        """Runs the tool in a window of so many columns, then says how it has ended."""
        self._count += 1
        name = f"window-{self._count}"
        command = shlex.join([str(PREFIX / "bin" / "millrace"), *map(str, words)])
        settings = "".join(f"{name}={shlex.quote(value)} " for name, value in variables.items())
        # The shell goes on after Ctrl-C, which the terminal sends to it as well.
        script = f"trap : INT; {settings}{command}; echo \"ended: $?\"; exec sleep {SECONDS_MAX}"
        self._tmux("new-session", "-d", "-s", name, "-x", columns, "-y", 60, script)
        return Window(self, name)

    def close(self) -> None:
        if self._socket.exists():
            self._tmux("kill-server")


class Window:
    def __init__(self, terminals: Terminals, name: str):
        self._terminals = terminals
        self._name = name

    def text(self, *options: str) -> str:
        return self._terminals._tmux("capture-pane", "-p", "-S", "-", *options, "-t", self._name)

    def keys(self, *keys: str) -> None:
        self._terminals._tmux("send-keys", "-t", self._name, *keys)

    def wait_for(self, part: str) -> str:
        deadline = time.monotonic() + SECONDS_MAX
        while part not in (seen := self.text()):
            assert time.monotonic() < deadline, f"{part!r} is not to be seen:\n{seen}"
        return seen

    def ended(self) -> tuple[list[str], int]:
        """The lines that stand there, and the exit code."""
        seen = self.wait_for("ended: ")
        before, _, code = seen.partition("ended: ")
        return before.splitlines(), int(code.split()[0])
