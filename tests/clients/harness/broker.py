"""The broker under test as a process: started on a free port over a temporary folder, waited for,
stopped, killed, started again on the same data. `Millrace` is the subject; `ApacheKafka` shows that
a test is right."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from harness import maven
from harness.paths import RELEASE
from harness.wire import RawConnection

START_SECONDS_MAX = 120
LOG_LINE_SECONDS_MAX = 60
PREFIX = Path(os.environ.get("MILLRACE_PREFIX", RELEASE))


PORTS = range(20000, 32000)
"""Below those that the kernel gives to outgoing connections: while a broker is down, a client that
tries to reach it could be given its port, and would then talk to itself."""


def free_port() -> int:
    """Of the share of this worker, for with `-n` others look for ports at the same time, and a broker
    that is down comes back on its own."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = PORTS[number % workers :: workers]
    while True:
        port = random.choice(share)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Broker(ABC):
    """One broker over one data folder. `defaults` are settings under Kafka's own names, for both
    kinds."""

    stop_seconds_max: float
    stop_code: int
    """What a clean stop may take, and the exit code it ends with."""
    logs_half_a_request: bool
    id = 1

    def __init__(self, folder: Path, defaults: dict[str, object]):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log_path = folder / "broker.log"
        self.defaults = defaults
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    @abstractmethod
    def command(self) -> list[str]: ...

    def start(self) -> "Broker":
        """Returns once the broker is up; fails with its log if it ends first or takes too long."""
        return self._start_until(self._is_up)

    def start_early(self) -> "Broker":
        """Returns once it answers at all: what it serves may not be all there yet."""
        return self._start_until(self._answers)

    def _start_until(self, begun: Callable[[], bool]) -> "Broker":
        assert self.process is None
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not begun():
            code = self._ended_meanwhile()
            if code is not None:
                self.process = None
                raise AssertionError(
                    f"broker ended with code {code} while starting:\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"not up in {START_SECONDS_MAX} s:\n{self.log_tail()}")
        return self

    def _is_up(self) -> bool:
        return self._answers()

    def _answers(self) -> bool:
        try:
            with RawConnection(self.address, timeout=5) as connection:
                connection.ask_api_versions()
            return True
        except (OSError, TimeoutError):
            return False

    def stop(self) -> tuple[int, float]:
        """SIGTERM; returns exit code and seconds taken. Fails with the log if the process does not
        end."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=self.stop_seconds_max + 10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"still running {time.monotonic() - started:.0f} s after SIGTERM:\n"
                f"{self.log_tail()}"
            ) from None
        self.process = None
        return code, time.monotonic() - started

    def kill(self) -> None:
        """kill -9, as far as the process goes what a power cut is; what the kernel has taken
        stays."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def end(self) -> None:
        """Stops what still runs. It must end cleanly: there a sanitizer that the broker was built
        with reports leaks and races."""
        if self.process is not None:
            self.assert_running()
            code, _ = self.stop()
            assert code == self.stop_code, f"stopped with code {code}:\n{self.log_tail()}"

    def close(self) -> None:
        if self.process is not None:
            self.kill()

    def assert_running(self) -> None:
        assert self.process.poll() is None, (
            f"broker ended with {self.process.returncode}:\n{self.log_tail()}"
        )

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(line[:300] for line in self.log_text().splitlines()[-lines:])

    def wait_for_log_line(self, *parts: str, timeout: float = LOG_LINE_SECONDS_MAX) -> str:
        """The first line of the log that holds all `parts`, as soon as there is one."""
        deadline = time.monotonic() + timeout
        while True:
            for line in self.log_text().splitlines():
                if all(part in line for part in parts):
                    return line
            self.assert_running()
            assert time.monotonic() < deadline, (
                f"no log line with {parts} in {timeout} s:\n{self.log_tail()}"
            )
            self._ended_meanwhile()

    def _ended_meanwhile(self) -> int | None:
        """The pause between two looks: a moment in which the process may end; its code if so."""
        try:
            return self.process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            return None


class Millrace(Broker):
    """`settings` are passed with --set, keys as in millrace.toml; `prefix` holds bin/ and lib/. A
    start is over when the broker is registered: it answers a moment before, and then neither knows
    of a broker that could take a topic nor leads anything."""

    stop_seconds_max = 5
    stop_code = 0
    logs_half_a_request = True
    shards = 2
    """So that messages between shards are tested on any machine; 0 is the broker's own choice."""

    def __init__(
        self,
        folder: Path,
        defaults: dict[str, object] | None = None,
        settings: dict[str, object] | None = None,
        prefix: Path | None = None,
    ):
        super().__init__(folder, defaults or {})
        self.settings = settings or {}
        self.prefix = prefix or PREFIX
        self._ready_before = 0

    def _start_until(self, begun: Callable[[], bool]) -> "Millrace":
        self._ready_before = self._count_ready()
        return super()._start_until(begun)

    def _is_up(self) -> bool:
        return self._count_ready() > self._ready_before and self._answers()

    def _count_ready(self) -> int:
        return self.log_text().count("broker: ready")

    def end(self) -> None:
        super().end()
        assert "something still waited at the end" not in self.log_text(), self.log_tail()

    def http_address(self) -> str:
        """Where the started broker serves HTTP: a port that the system chose."""
        lines = [line for line in self.log_text().splitlines() if "transport=http" in line]
        return re.search(r" address=(\S+)", lines[-1])[1]

    def command(self) -> list[str]:
        settings = {
            "broker.data": self.folder / "data",
            "transport.kafka.listen": self.address,
            "transport.http.listen": "127.0.0.1:0",
            "broker.shards": self.shards,
            "broker.id": self.id,
            **{f'defaults."{key}"': value for key, value in self.defaults.items()},
            **self.settings,
        }
        sets = [
            word for key, value in settings.items() for word in ("--set", f"{key}={_toml(value)}")
        ]
        return [str(self.prefix / "bin" / "millraced"), *sets]


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class ApacheKafka(Broker):
    """One node, broker and controller in one, from the released jars."""

    stop_seconds_max = 30
    stop_code = 128 + signal.SIGTERM
    logs_half_a_request = False
    cluster_id: str | None = None
    """Of the cluster that it is one of; without one, its own."""

    def __init__(self, folder: Path, defaults: dict[str, object] | None = None):
        super().__init__(folder, defaults or {})
        self.controller_port = free_port()

    def command(self) -> list[str]:
        classpath = maven.classpath("broker")
        properties = self.folder / "server.properties"
        if not properties.exists():
            self._prepare(properties, classpath)
        return [
            "java",
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classpath,
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "kafka.Kafka",
            str(properties),
        ]

    def _prepare(self, properties: Path, classpath: str) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            **{key: _toml(value) for key, value in self.defaults.items()},
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (self.folder / "log4j2.properties").write_text(
            "appender.out.type=Console\n"
            "appender.out.name=out\n"
            "appender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=[%d] %p %m (%c) %throwable{short.message}%n\n"
            "rootLogger.level=info\n"
            "rootLogger.appenderRef.out.ref=out\n"
        )
        storage_tool = ["java", "-cp", classpath, "kafka.tools.StorageTool"]
        cluster_id = self.cluster_id
        if cluster_id is None:
            made = subprocess.run(
                [*storage_tool, "random-uuid"], check=True, capture_output=True, text=True
            )
            cluster_id = made.stdout.split()[-1]
        subprocess.run(
            [*storage_tool, "format", "-t", cluster_id, "-c", properties],
            check=True,
            capture_output=True,
        )


class ApacheKafka39(Broker):
    """The last one that keeps old formats and answers old clients: it does with ZooKeeper and when
    told to speak to its peers as a 2.8."""

    stop_seconds_max = 30
    stop_code = 128 + signal.SIGTERM
    logs_half_a_request = False

    def __init__(self, folder: Path, defaults: dict[str, object] | None = None):
        super().__init__(folder, defaults or {})
        self.zookeeper_port = free_port()
        self.zookeeper: subprocess.Popen | None = None

    def start(self) -> "Broker":
        if self.zookeeper is None:
            self._start_zookeeper()
        super().start()
        # It answers before it knows its controller, and a client that hears so may ask no more.
        self.wait_for_log_line("Recorded new ZK controller", timeout=START_SECONDS_MAX)
        return self

    def _start_zookeeper(self) -> None:
        arguments = [str(self.zookeeper_port), str(self.folder / "zookeeper")]
        with (self.folder / "zookeeper.log").open("ab") as log:
            self.zookeeper = subprocess.Popen(
                [*self._java(), "org.apache.zookeeper.server.ZooKeeperServerMain", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def close(self) -> None:
        super().close()
        if self.zookeeper is not None:
            self.zookeeper.kill()
            self.zookeeper.wait()
            self.zookeeper = None

    def command(self) -> list[str]:
        settings = {
            "broker.id": 1,
            "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
            "listeners": f"PLAINTEXT://{self.address}",
            "inter.broker.protocol.version": "2.8",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            **{key: _toml(value) for key, value in self.defaults.items()},
        }
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return [*self._java(), "kafka.Kafka", str(properties)]

    @staticmethod
    def _java() -> list[str]:
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false"]
        return ["java", *options, "-cp", maven.classpath("broker-3.9")]


def copy_without_plugin(plugin: str, target: Path) -> Path:
    """A prefix of its own, which the daemon finds its plugins in, that lacks the plugin
    KIND/NAME."""
    (target / "bin").mkdir(parents=True)
    shutil.copy2(PREFIX / "bin" / "millraced", target / "bin")
    shutil.copytree(PREFIX / "lib" / "millrace", target / "lib" / "millrace", symlinks=True)
    (target / "lib" / "millrace" / "plugins" / f"{plugin}.so").unlink()
    return target
