"""Real shells on a terminal of their own, as somebody types in them: what Tab makes of a line."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import termios
import time
from pathlib import Path

from harness.paths import SOURCE

SCRIPTS = SOURCE / "packaging" / "completions"
# Where the packages put them, by the name that the shell looks for.
INSTALLED = {
    "bash": {"millrace": "millrace.bash", "millraced": "millraced.bash"},
    "zsh": {"_millrace": "_millrace"},
    "fish": {"millrace.fish": "millrace.fish", "millraced.fish": "millraced.fish"},
}
ANSWER_SECONDS_MAX = 20


class Shell:
    """`programs` come first in PATH. `folder` is its home, with the scripts as they are installed."""

    def __init__(self, name: str, folder: Path, programs: Path):
        scripts = folder / "scripts"
        scripts.mkdir(parents=True)
        for installed, source in INSTALLED[name].items():
            shutil.copy(SCRIPTS / source, scripts / installed)
        start = {
            "bash": f"source {scripts}/millrace; source {scripts}/millraced; "
            "bind 'set enable-bracketed-paste off'",
            "zsh": f"bindkey -e; setopt no_auto_menu; fpath=({scripts} $fpath); "
            f"autoload -Uz compinit; compinit -u -d {folder}/dump",
            "fish": f"set fish_complete_path {scripts}; function fish_prompt; echo '$ '; end",
        }
        command = {
            "bash": ["bash", "--norc", "--noprofile", "-i"],
            "zsh": ["zsh", "-f", "-i"],
            "fish": ["fish", "--no-config", "-i"],
        }
        environment = {
            "HOME": str(folder),
            "PATH": f"{programs}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb" if name != "fish" else "xterm",
        }
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[name][0], command[name], environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
        self.seen = ""
        self.run(start[name])

    def run(self, line: str) -> None:
        self._type(f"{line}\n")
        self._type("printf '{%s}\\n' begun\n")
        self._wait_for(r"\{begun\}")

    def complete(self, line: str) -> list[str]:
        """The words of `line` after Tab has been pressed at its end."""
        self._type(f"{line}\t")
        # To the line's beginning: the words are printed in place of being run.
        self._type("\x01printf '<%s>' \x05 ; printf '{%s}\\n' shown\n")
        shown = self._wait_for(r"((?:<[^<>]*>)+)\{shown\}")
        return re.findall("<([^<>]*)>", shown[1])

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)

    def _type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def _wait_for(self, pattern: str) -> re.Match:
        give_up_at = time.monotonic() + ANSWER_SECONDS_MAX
        while (found := re.search(pattern, self.seen)) is None:
            left = give_up_at - time.monotonic()
            ready, _, _ = select.select([self.terminal], [], [], max(left, 0))
            assert ready, f"no {pattern} in {self.seen!r}"
            self.seen += os.read(self.terminal, 1 << 16).decode(errors="replace")
        self.seen = self.seen[found.end() :]
        return found
