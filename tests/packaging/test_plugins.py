"""Plugins that come as packages, or are dropped in, on a Debian that boots: found, listed, used after a reload of the
service with all that its unit forbids, refused, and gone again."""

import json
import sys
from pathlib import Path

import pytest
from test_machine import PRODUCE, pid
from test_packages import field, package, run, unpacked

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

from harness.plugin_files import install_damaged  # noqa: E402: the path is set above

EXAMPLES = ("bank", "contains", "word_count")
FOLDER = "/usr/lib/millrace/plugins/operators"


def listed(machine, plugin: str) -> dict | None:
    """What the tool says of a plugin, by KIND/NAME."""
    plugins = json.loads(machine.run("millrace plugin list --output json"))["plugins"]
    return next((one for one in plugins if one["plugin"] == plugin), None)


def test_the_plugin_for_zookeeper_comes_and_goes(machine):
    machine.install("millrace")
    assert "zookeeper" not in machine.run("millrace plugin list")
    machine.install("millrace-plugin-zookeeper")
    assert "zookeeper" in machine.run("millrace plugin list")
    machine.run("apt-get -qq remove millrace-plugin-zookeeper")
    assert "zookeeper" not in machine.run("millrace plugin list")


@pytest.fixture(scope="session")
def tally(packages, tmp_path_factory) -> Path:
    """The package of a plugin as `millrace plugin new` begins it and one command makes it, by what the packages have."""
    folder = tmp_path_factory.mktemp("plugin")
    for name in ("millrace", "millrace-sdk"):
        unpacked(package(packages, name), folder / "installed")
    prefix = folder / "installed" / "usr"
    project = folder / "clicks"
    run(prefix / "bin" / "millrace", "plugin", "new", "clicks", "--kind", "operators", "--into", project)
    run(
        "env", "-C", project, "CXX=g++", f"CMAKE_PREFIX_PATH={prefix}", "cmake", "--workflow", "--preset", "package",
    )  # fmt: skip
    (made,) = (project / "build").glob("millrace-plugin-clicks_*.deb")
    return made


def test_a_plugin_of_ones_own_comes_is_used_and_goes(machine, tally):
    """Its package, a file in conf.d, a reload; and back."""
    machine.install("millrace")
    machine.run("systemctl start millrace && millrace topic create visits && millrace topic create counts")
    before = pid(machine)
    machine.install(machine.put(tally, "/tmp"))
    clicks = listed(machine, "operators/clicks")
    major, minor = clicks.pop("abi").split(".")
    assert f"millrace-plugin-abi-{major} (>= {major}.{minor})" in field(tally, "Depends")
    assert clicks == {
        "plugin": "operators/clicks",
        "kind": "operators",
        "id": "org.example.operators.clicks",
        "version": "0.1.0",
        "state": "ok",
        "path": f"{FOLDER}/clicks.so",
        "package": "millrace-plugin-clicks",
        "uses": [],
    }
    machine.run(
        "printf '[stream.counted]\\nsources = [\"visits\"]\\nsink = \"counts\"\\n[[stream.counted.steps]]\\n"
        "operator = \"clicks\"\\nevery_ms = 1\\n' > /etc/millrace/conf.d/counted.toml"
    )
    machine.run("systemctl reload millrace")
    machine.run(
        f"for key in a a b; do echo $key:x | {PRODUCE.replace('orders', 'visits')} -K:; done; "
        "timeout 60 kcat -b 127.0.0.1:9092 -t counts -C -c 1 -o beginning -f '%k %s\\n' | grep -q '^a '"
    )
    (use,) = listed(machine, "operators/clicks")["uses"]
    assert "counted" in use["table"]
    shown = machine.run("millrace plugin list")
    (row,) = [line for line in shown.splitlines() if line.startswith("operators/clicks ")]
    for word in ("0.1.0", f"{major}.{minor}", "ok", f"[{use['table']}]", "millrace-plugin-clicks", f"{FOLDER}/clicks.so"):
        assert f" {word}" in row
    machine.run("rm /etc/millrace/conf.d/counted.toml && systemctl reload millrace")
    assert "counted" not in machine.run("millrace stream list")
    machine.run("apt-get -qq remove millrace-plugin-clicks")
    assert listed(machine, "operators/clicks") is None
    assert pid(machine) == before


def test_a_damaged_plugin_is_refused_by_a_reload_and_listed_with_the_reason(machine, tally, tmp_path):
    """It ends whatever process loads it. That is one of its own, and not the broker."""
    machine.install("millrace")
    machine.run("systemctl start millrace")
    before = pid(machine)
    whole = unpacked(tally, tmp_path) / FOLDER.lstrip("/") / "clicks.so"
    install_damaged(whole, tmp_path / "hurt.so")
    machine.put(tmp_path / "hurt.so", FOLDER)
    machine.run(
        "printf '[stream.hurt]\\nsources = [\"visits\"]\\n[[stream.hurt.steps]]\\noperator = \"hurt\"\\n' "
        "> /etc/millrace/conf.d/hurt.toml"
    )
    # The check of a reload, and a broker that is asked all the same.
    machine.run("systemctl reload millrace", code=1)
    assert "loads it ends by SIG" in machine.journal()
    machine.run(
        "systemctl kill --signal=HUP millrace; timeout 60 grep -q 'nothing was changed' "
        "<(journalctl --follow --lines=100 --unit=millrace)"
    )
    assert pid(machine) == before
    hurt = listed(machine, "operators/hurt")
    assert (hurt["state"], hurt["package"], hurt["uses"]) == ("refused", None, [])
    assert f"{FOLDER}/hurt.so: a process that loads it ends by SIG" in hurt["reason"]
    assert f"refused: {hurt['reason']}" in machine.run("millrace plugin list")


def test_the_sdk_builds_the_examples_with_the_compiler_of_debian(machine):
    machine.install("millrace", "millrace-sdk")
    assert machine.run("g++ -dumpversion").strip() == "12"
    for name in EXAMPLES:
        machine.run(
            f"g++ -std=c++23 -O2 -shared -fPIC -fvisibility=hidden -o /tmp/{name}.so "
            f"/usr/share/millrace/examples/{name}.cc -lmillrace_sdk"
        )
        assert "fits this kernel" in machine.run(f"millrace plugin check /tmp/{name}.so")
