"""A Debian 12 of its own: made by mmdebstrap, booted by systemd-nspawn."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

START_SECONDS_MAX = 60
COMMAND_SECONDS_MAX = 180
STOP_SECONDS_MAX = 60

# Beside what a Debian needs to boot: clients, a compiler for plugins, and what somebody at a terminal has.
INCLUDED = ("systemd-sysv", "dbus", "kcat", "curl", "g++", "bash-completion", "tmux")
INSIDE = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}


def apt_sources(folder: Path = Path("/etc/apt")) -> list[Path]:
    """Where this machine has Debian 12 from, and nothing that others offer for it."""
    candidates = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    bookworm = re.compile(r"(?<!\S)bookworm(?!\S)")
    return [
        path
        for path in candidates
        if path.suffix in (".list", ".sources")
        and path.exists()
        and bookworm.search(re.sub(r"(?m)^\s*#.*", "", path.read_text()))
    ]


def make_root(root: Path, packages: Iterable[Path]) -> None:
    """A folder that boots, with the files in its cache that apt needs to install `packages`: no
    machine has a network."""
    sources = apt_sources()
    assert sources, "no apt source of this machine has the suite bookworm"
    download = 'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -qq install --download-only --no-install-recommends '
    subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(INCLUDED)}",
         "--skip=cleanup/apt", "--customize-hook=" + download + " ".join(map(str, packages)),
         "bookworm", root, *sources],
        check=True,
    )  # fmt: skip


class Machine:
    """`root`, booted; it has loopback alone and stays as it was: what the machine writes goes when
    it stops. It sees `packages` as /packages."""

    def __init__(self, root: Path, packages: Path, folder: Path):
        self._log = folder / "console.log"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, self._log.open("w") as log:
            notices.bind(str(folder / "notices"))
            notices.settimeout(START_SECONDS_MAX)
            self._nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--boot", "--notify-ready=yes", f"--directory={root}",
                 "--volatile=overlay", "--private-network", "--register=no", "--keep-unit",
                 f"--machine=debian-{os.getpid()}", f"--bind-ro={packages}:/packages"],
                env=os.environ | {"NOTIFY_SOCKET": str(folder / "notices")},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                self._init = self._wait_until_up(notices)
            except BaseException:
                self.stop()
                raise

    def _wait_until_up(self, notices: socket.socket) -> int:
        """Its first process, by the number it has out here; all that starts with it has started."""
        init = None
        while True:
            try:
                notice = notices.recv(4096).decode().splitlines()
            except TimeoutError:
                raise AssertionError(f"it did not boot:\n{self.log_tail()}") from None
            for line in notice:
                name, _, value = line.partition("=")
                if name == "X_NSPAWN_LEADER_PID":
                    init = int(value)
            if "READY=1" in notice and init is not None:
                return init

    def _enter(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", f"--target={self._init}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root",
             "--wdns=/", "bash", "-o", "pipefail", "-c", command],
            env=INSIDE, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=COMMAND_SECONDS_MAX, check=False,
        )  # fmt: skip

    def run(self, command: str, code: int = 0) -> str:
        """What the shell command wrote to its output, and before that to its errors."""
        done = self._enter(command)
        said = f"{done.stderr}{done.stdout}"
        assert done.returncode == code, f"{command}: exit code {done.returncode}\n{said}"
        return said

    def until(self, command: str) -> str:
        """The same, once the command succeeds."""
        deadline = time.monotonic() + COMMAND_SECONDS_MAX
        while (done := self._enter(command)).returncode != 0:
            assert time.monotonic() < deadline, f"{command}: not within time\n{done.stderr}{done.stdout}"
        return f"{done.stderr}{done.stdout}"

    def beside(self, script: Path, *arguments: str) -> subprocess.Popen[str]:
        """A script of ours with our Python, in its network."""
        return subprocess.Popen(
            ["nsenter", f"--target={self._init}", "--net", sys.executable, script, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def put(self, file: Path, folder: str) -> str:
        """Copies a file of ours into it."""
        with Path(f"/proc/{self._init}/root{folder}/{file.name}").open("wb") as copy:
            copy.write(file.read_bytes())
        return f"{folder}/{file.name}"

    def install(self, *packages: str, options: str = "") -> str:
        """Those of /packages, by name; others by their path."""
        paths = [name if "/" in name else f"/packages/{name}_*.deb" for name in packages]
        return self.run(f"apt-get -qq install --no-install-recommends {options} {' '.join(paths)}")

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def journal(self) -> str:
        return self._enter("journalctl --no-pager --lines=60 --unit='millrace*'").stdout

    def stop(self) -> None:
        """An orderly shutdown, as a machine's power button asks for."""
        if self._nspawn.poll() is None:
            self._nspawn.send_signal(signal.SIGTERM)
            try:
                self._nspawn.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._nspawn.kill()
                self._nspawn.wait()
                raise


def assert_root() -> None:
    assert os.geteuid() == 0, "to boot a Debian takes root: sudo tests/run packaging"
