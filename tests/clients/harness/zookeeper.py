"""Debian's ZooKeeper as a process of the tests, alone or as one of an ensemble."""

import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.broker import free_port

START_SECONDS_MAX = 60
TICK_MS = 250
"""The end of a session is rounded up to it."""
SESSION_MS_MAX = 60_000
"""Unless told, servers grant at most 20 ticks."""
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
JAVA = ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JARS]
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@dataclass
class Member:
    client_port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    election_port: int = field(default_factory=free_port)


class ZooKeeper:
    """One server over one folder."""

    def __init__(self, folder: Path, number: int = 1, members: list[Member] | None = None):
        folder.mkdir(parents=True)
        members = members or [Member()]
        self.folder = folder
        self.address = f"127.0.0.1:{members[number - 1].client_port}"
        self.process: subprocess.Popen | None = None
        lines = [
            f"tickTime={TICK_MS}",
            f"maxSessionTimeout={SESSION_MS_MAX}",
            f"initLimit={10_000 // TICK_MS}",
            f"syncLimit={2000 // TICK_MS}",
            f"dataDir={folder / 'data'}",
            f"clientPort={members[number - 1].client_port}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "maxClientCnxns=0",
            "4lw.commands.whitelist=srvr,cons,dump",
        ]
        (folder / "data").mkdir()
        if len(members) > 1:
            lines += [
                f"server.{at}=127.0.0.1:{one.peer_port}:{one.election_port}"
                for at, one in enumerate(members, 1)
            ]
            (folder / "data" / "myid").write_text(f"{number}\n")
        (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")

    def begin(self) -> "ZooKeeper":
        """Returns at once: a member serves when there is a majority."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*JAVA, MAIN, str(self.folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def wait(self) -> "ZooKeeper":
        """Returns once it serves."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while "Mode:" not in self.ask("srvr"):
            log = (self.folder / "server.log").read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, f"ZooKeeper does not serve:\n{log}"
            try:  # the pause between two looks
                code = self.process.wait(timeout=0.05)
                raise AssertionError(f"ZooKeeper ended with {code}:\n{log}")
            except subprocess.TimeoutExpired:
                pass
        return self

    def start(self) -> "ZooKeeper":
        return self.begin().wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = None

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process is not None:
            self.kill()

    def ask(self, command: str) -> str:
        """What it answers to one of its four letter commands; "" when it does not."""
        host, port = self.address.split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                connection.sendall(command.encode())
                answer = b""
                while part := connection.recv(4096):
                    answer += part
                return answer.decode()
        except OSError:
            return ""

    def leads(self) -> bool:
        return "Mode: leader" in self.ask("srvr")

    def run(self, *commands: str) -> str:
        """Commands of zkCli, one after the other; its output."""
        done = subprocess.run(
            [*JAVA, "org.apache.zookeeper.ZooKeeperMain", "-server", self.address],
            input="\n".join([*commands, "quit", ""]),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout

    def children(self, path: str) -> list[str]:
        listed = re.search(r"^\[(.*)\]$", said := self.run(f"ls {path}"), re.MULTILINE)
        assert listed, said
        return [name for name in listed[1].split(", ") if name]


def ensemble(folder: Path, count: int = 3) -> list[ZooKeeper]:
    """Started, and serving."""
    members = [Member() for _ in range(count)]
    servers = [
        ZooKeeper(folder / f"zookeeper-{at}", at, members).begin() for at in range(1, count + 1)
    ]
    return [server.wait() for server in servers]
