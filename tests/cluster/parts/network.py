"""Each broker and ZooKeeper in a network namespace of its own, all of them and the test on a bridge;
what passes is what nftables lets pass. Needs root, `ip` and `nft`."""

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest
from harness.zookeeper import JAVA, MAIN, ZooKeeper

from parts.cluster import Cluster, ClusterBroker

SUBNETS = "10.213"
CLIENTS_HOST = 254
ZOOKEEPER_HOST = 100
CLIENTS = "clients"
ZOOKEEPER = "zookeeper"
BROKER_PORT, ZOOKEEPER_PORT = 9092, 2181
_numbers = count()


def skip_unless_possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    for tool in ("ip", "nft"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}, of Debian's iproute2 and nftables")


def run(*words: object, input: str | None = None) -> str:
    done = subprocess.run(list(map(str, words)), input=input, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def worker() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


class Network:
    """Hosts by name: "b1" is broker 1, beside ZOOKEEPER and CLIENTS, which is the test."""

    def __init__(self):
        self.number = (worker() * 32 + next(_numbers) % 32) % 256
        self.name = f"mr{self.number}"
        self._hosts: dict[str, int] = {}
        self.close()  # what a test that was killed has left
        hub = self._namespace("hub")
        run("ip", "netns", "add", hub)
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        self._hosts[CLIENTS] = CLIENTS_HOST
        self._plug(CLIENTS, self.name, None)

    def add(self, host: str, number: int) -> None:
        self._hosts[host] = number
        run("ip", "netns", "add", self._namespace(host))
        run("ip", "-n", self._namespace(host), "link", "set", "lo", "up")
        self._plug(host, "eth0", self._namespace(host))

    def address(self, host: str) -> str:
        return f"{SUBNETS}.{self.number}.{self._hosts[host]}"

    def inside(self, host: str) -> list[str]:
        """What a command is to begin with, to run there."""
        return ["ip", "netns", "exec", self._namespace(host)]

    def cut(
        self,
        host: str,
        others: list[str],
        *,
        arriving: bool = True,
        leaving: bool = True,
        percent: int = 100,
    ) -> None:
        """Of what comes from `others`, and goes there, so much is lost from now on."""
        them = ", ".join(self.address(other) for other in others)
        share = "" if percent == 100 else f"numgen random mod 100 < {percent} "
        rules = "table ip cut {\n"
        if arriving:
            rules += (
                "chain arriving { type filter hook input priority 0;\n"
                f"ip saddr {{ {them} }} {share}drop\n}}\n"
            )
        if leaving:
            rules += (
                "chain leaving { type filter hook output priority 0;\n"
                f"ip daddr {{ {them} }} {share}drop\n}}\n"
            )
        run(*self.inside(host), "nft", "-f", "-", input=rules + "}\n")

    def heal(self) -> None:
        for host in self._hosts:
            if host != CLIENTS:
                run(*self.inside(host), "nft", "flush", "ruleset")

    def close(self) -> None:
        for line in run("ip", "netns", "list").splitlines():
            if line.split()[0].startswith(f"{self.name}-"):
                run("ip", "netns", "delete", line.split()[0])

    def _namespace(self, host: str) -> str:
        return f"{self.name}-{host}"

    def _plug(self, host: str, interface: str, namespace: str | None) -> None:
        """Into the bridge. Our own end goes with the bridge's."""
        hub = self._namespace("hub")
        run(
            *("ip", "-n", hub, "link", "add", f"to-{host}"[:15], "type", "veth"),
            *("peer", "name", interface, "netns", namespace or str(os.getpid())),
        )
        run("ip", "-n", hub, "link", "set", f"to-{host}"[:15], "master", "bridge", "up")
        here = ["ip"] if namespace is None else ["ip", "-n", namespace]
        run(*here, "address", "add", f"{self.address(host)}/24", "dev", interface)
        run(*here, "link", "set", interface, "up")


class ZooKeeperInNetwork(ZooKeeper):
    def __init__(self, folder: Path, network: Network):
        super().__init__(folder)
        self.network = network
        host = network.address(ZOOKEEPER)
        self.address = f"{host}:{ZOOKEEPER_PORT}"
        config = folder / "zoo.cfg"
        replaced = {"clientPort": ZOOKEEPER_PORT, "clientPortAddress": host}
        lines = [line.split("=", 1) for line in config.read_text().splitlines()]
        config.write_text("".join(f"{key}={replaced.get(key, value)}\n" for key, value in lines))

    def begin(self) -> "ZooKeeperInNetwork":
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.network.inside(ZOOKEEPER), *JAVA, MAIN, str(self.folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self


class BrokerInNetwork(ClusterBroker):
    def __init__(self, folder: Path, id: int, zookeeper: str, options, network: Network):
        super().__init__(folder, id, zookeeper, options)
        self.network = network
        self.host = f"b{id}"
        if self.host not in network._hosts:
            network.add(self.host, id)
        self.port = BROKER_PORT
        self.address = f"{network.address(self.host)}:{BROKER_PORT}"

    def command(self) -> list[str]:
        return [*self.network.inside(self.host), *super().command()]


class NetworkCluster(Cluster):
    """Cuts are made by numbers of brokers, CLIENTS and ZOOKEEPER."""

    def __init__(self, folder: Path, brokers: int = 3, **options: object):
        super().__init__(folder, brokers, **options)
        self.network = Network()

    def start_zookeepers(self) -> list[ZooKeeper]:
        self.network.add(ZOOKEEPER, ZOOKEEPER_HOST)
        return [ZooKeeperInNetwork(self.folder / "zookeeper", self.network).start()]

    def make(self, id: int, folder: str | None = None) -> ClusterBroker:
        path = self.folder / (folder or f"broker-{id}")
        return BrokerInNetwork(path, id, self.connect, self.options, self.network)

    def others(self, id: int) -> list[str]:
        return [f"b{other}" for other in self.brokers if other != id]

    def close(self) -> None:
        super().close()
        self.network.close()
