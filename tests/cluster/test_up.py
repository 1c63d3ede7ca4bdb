"""`up` and `down`, as a person uses them."""

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from harness.broker import PREFIX, free_port
from harness.tool import Tool

HERE = Path(__file__).resolve().parent


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def call(program: str, *words: str, **settings: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(HERE / program), *words],
        env={**os.environ, "MILLRACE_PREFIX": str(PREFIX), **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )


def free_ports(count: int) -> int:
    """The first of so many for brokers: that below is ZooKeeper's. Another test may have some."""
    while True:
        port = free_port()
        if not any(is_taken(one) for one in range(port - 1, port + count)):
            return port


@pytest.mark.slow
def test_three_brokers_are_one_cluster(tmp_path):
    port = free_ports(3)
    settings = {
        "MILLRACE_CLUSTER": str(tmp_path / "cluster"),
        "MILLRACE_CLUSTER_PORT": str(port),
    }
    try:
        up = call("up", "3", **settings)
        assert up.returncode == 0, up.stdout + up.stderr
        for number in range(3):
            assert f"broker {number + 1}   127.0.0.1:{port + number}" in up.stdout
        words = ("--partitions", 3, "--replication-factor", 3)
        Tool(f"127.0.0.1:{port}").text("topic", "create", "shared", *words)
        Tool(f"127.0.0.1:{port + 1}").text("produce", "shared", stdin="a\nb\n")
        read = Tool(f"127.0.0.1:{port + 2}").text("consume", "shared")
        assert sorted(read.split()) == ["a", "b"]
        assert "4 processes ended" in call("down", **settings).stdout
    finally:
        call("down", **settings)


def test_a_cluster_is_started_used_ended_and_goes_on(tmp_path):
    port = free_ports(1)
    settings = {
        "MILLRACE_CLUSTER": str(tmp_path / "cluster"),
        "MILLRACE_CLUSTER_PORT": str(port),
    }
    tool = Tool(f"127.0.0.1:{port}")
    try:
        up = call("up", "1", **settings)
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"broker 1   127.0.0.1:{port}" in up.stdout
        assert (tmp_path / "cluster" / "broker-1" / "broker.log").exists()
        tool.text("topic", "create", "kept", "--partitions", 1)
        tool.text("produce", "kept", stdin="a\nb\n")
        again = call("up", "1", **settings)
        assert again.returncode != 0 and "tests/cluster/down" in again.stderr
        down = call("down", **settings)
        assert down.returncode == 0, down.stdout + down.stderr
        assert "2 processes ended" in down.stdout
        assert "no cluster runs" in call("down", **settings).stdout

        assert call("up", "1", **settings).returncode == 0
        assert tool.text("consume", "kept") == "a\nb\n"
    finally:
        call("down", **settings)


def test_a_port_in_use_is_said_before_anything_is_started(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = call(
            "up", "2", MILLRACE_CLUSTER=str(tmp_path / "c"), MILLRACE_CLUSTER_PORT=str(port)
        )
    assert up.returncode != 0
    assert re.search(rf"in use: port .*\b{port}\b.*; set MILLRACE_CLUSTER_PORT", up.stderr), up.stderr
    assert not (tmp_path / "c").exists()
