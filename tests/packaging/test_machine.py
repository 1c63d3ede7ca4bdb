"""The operator's day: installed, started, used, upgraded, removed, purged on a Debian that knows none of it."""

import re
from pathlib import Path

import pytest
from test_packages import package, run, unpacked

PRODUCE = "kcat -b 127.0.0.1:9092 -t orders -P -X acks=all"
CONSUME = "timeout 60 kcat -b 127.0.0.1:9092 -t orders -C -e -q -o beginning"

EXAMPLES = ("bank", "contains", "word_count")


def start_with_a_message(machine) -> None:
    machine.install("millrace")
    machine.run("systemctl start millrace")
    machine.run("millrace topic create orders")
    machine.run(f"echo hello | {PRODUCE}")


def pid(machine) -> str:
    return machine.run("systemctl show --property=MainPID --value millrace").strip()


def traces(machine) -> list[str]:
    """All that bears the name, but what apt downloaded and the journal."""
    return machine.run(
        "find / -xdev -ipath '*millrace*' -not -path '/packages*' -not -path '/var/cache/apt/*' "
        "-not -path '/proc/*' -not -path '/tmp/*' -prune; getent passwd millrace; getent group millrace; true"
    ).split()


# What a system writes of itself whatever is installed.
OF_THE_SYSTEM = re.compile(
    r"/(var/lib/(dpkg|apt)/|var/cache/(apt|debconf|ldconfig)/|var/log/(apt|journal)/|var/log/[^/ ]+ f "
    r"|var/lib/systemd/(random-seed|timers/|catalog/)|etc/(passwd|group|shadow|gshadow)- )"
)


def listing(machine) -> set[str]:
    """Everything there is, with its kind, mode, owner and what a link points to."""
    found = machine.run(
        "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /packages \\) "
        "-prune -o -printf '%p %y %m %u:%g %l\\n'"
    )
    return {line for line in found.splitlines() if not OF_THE_SYSTEM.match(line)}


def test_it_is_installed_not_started_and_serves_once_it_is(machine):
    machine.install("millrace")
    assert machine.run("systemctl is-active millrace", code=3).strip() == "inactive"
    assert machine.run("systemctl is-enabled millrace").strip() == "enabled"
    machine.run("systemctl start millrace")
    machine.run("millrace topic create orders")
    machine.run(f"echo hello | {PRODUCE}")
    assert machine.run(CONSUME) == "hello\n"
    assert machine.run("stat -c %U /proc/$(systemctl show -P MainPID millrace)").strip() == "millrace"


def test_removed_it_keeps_data_and_configuration(machine):
    start_with_a_message(machine)
    machine.run("apt-get -qq remove millrace")
    assert machine.run("find /proc -maxdepth 2 -name exe -lname '*/millraced*' 2>/dev/null; true") == ""
    machine.run("test -e /etc/millrace/millrace.toml -a ! -e /usr/bin/millraced")
    machine.install("millrace")
    machine.run("systemctl start millrace")
    assert machine.run(CONSUME) == "hello\n"


def test_a_purge_leaves_topics_and_says_how_to_delete_them(machine):
    start_with_a_message(machine)
    said = machine.run("apt-get -qq purge millrace")
    command = re.search(r"/var/lib/millrace holds topics.*: (rm .*)$", said, re.MULTILINE)[1]
    assert traces(machine) == ["/var/lib/millrace"]
    # The user went. Another may have its number by the time it comes back.
    machine.run("useradd --system other")
    machine.install("millrace")
    machine.run("systemctl start millrace")
    assert machine.run(CONSUME) == "hello\n"
    machine.run(f"apt-get -qq purge millrace && {command}")
    assert traces(machine) == []


def test_a_purge_without_topics_leaves_nothing(machine):
    machine.install("millrace", "millrace-plugin-zookeeper", "millrace-sdk", "millrace-dbgsym")
    machine.run("systemctl start millrace")
    machine.run("apt-get -qq purge 'millrace*'")
    assert traces(machine) == []


def test_nothing_is_left_behind(machine):
    """Not of what it needed either, once a purge is followed by the command that it names."""
    before = listing(machine)
    start_with_a_message(machine)
    machine.install("millrace-plugin-zookeeper", "millrace-sdk", "millrace-dbgsym")
    machine.run("millrace topic list; systemctl restart millrace; systemctl reload millrace")
    assert len(listing(machine) - before) > 100
    said = machine.run("apt-get -qq purge 'millrace*' && apt-get -qq autoremove --purge")
    machine.run(re.search(r"holds topics.*: (rm .*)$", said, re.MULTILINE)[1])
    after = listing(machine)
    assert (after - before, before - after) == (set(), set())


def next_version(machine, change: str) -> str:
    """The same package of a later version, with a configuration that `change` edits."""
    machine.run(
        "dpkg-deb --raw-extract /packages/millrace_*.deb /tmp/next && cd /tmp/next && "
        f"sed -i 's/^Version: .*/&+next/' DEBIAN/control && sed -i '{change}' etc/millrace/millrace.toml && "
        "dpkg-deb -Zgzip -z1 --build . /tmp/millrace-next.deb"
    )
    return "/tmp/millrace-next.deb"


def test_an_upgrade_keeps_an_edited_configuration_and_restarts(machine):
    start_with_a_message(machine)
    machine.run("sed -i '0,/^#level = .*/s//level = \"debug\"/' /etc/millrace/millrace.toml")
    before = pid(machine)
    later = next_version(machine, "1i# A line of the later version.")
    machine.install(later, options="-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold")
    config = machine.run("cat /etc/millrace/millrace.toml")
    assert 'level = "debug"' in config
    assert "later version" not in config
    assert "later version" in machine.run("cat /etc/millrace/millrace.toml.dpkg-dist")
    assert pid(machine) not in (before, "0")
    assert machine.run(CONSUME) == "hello\n"


def test_an_upgrade_under_load_loses_and_repeats_nothing(machine):
    """And back to the version that there was before."""
    start_with_a_message(machine)
    later = next_version(machine, "1i# A line of the later version.")
    machine.run("millrace topic create numbers --partitions 1")
    pids = [pid(machine)]
    with machine.beside(Path(__file__).with_name("load.py"), "127.0.0.1:9092", "numbers") as load:

        def goes_on() -> None:
            load.stdin.write("\n")
            load.stdin.flush()
            assert load.stdout.readline() == "more\n"

        goes_on()
        for name, options in ((later, ""), ("millrace", "--allow-downgrades")):
            machine.install(name, options=options)
            pids.append(pid(machine))
            goes_on()
        said, _ = load.communicate(timeout=120)
    assert load.returncode == 0, said
    assert len({*pids, "0"}) == 4


def test_an_upgrade_renews_a_configuration_that_nobody_edited(machine):
    machine.install("millrace")
    machine.install(next_version(machine, "1i# A line of the later version."))
    assert "later version" in machine.run("cat /etc/millrace/millrace.toml")
    # It was not running, and still is not.
    assert machine.run("systemctl is-active millrace", code=3).strip() == "inactive"


def test_the_plugin_for_zookeeper_comes_and_goes(machine):
    machine.install("millrace")
    assert "zookeeper" not in machine.run("millrace plugin list")
    machine.install("millrace-plugin-zookeeper")
    assert "zookeeper" in machine.run("millrace plugin list")
    machine.run("apt-get -qq remove millrace-plugin-zookeeper")
    assert "zookeeper" not in machine.run("millrace plugin list")


@pytest.fixture(scope="session")
def tally(packages, tmp_path_factory) -> Path:
    """The package of a plugin as `millrace plugin new` makes it, by what the packages have."""
    folder = tmp_path_factory.mktemp("plugin")
    for name in ("millrace", "millrace-sdk"):
        unpacked(package(packages, name), folder / "installed")
    prefix = folder / "installed" / "usr"
    project = folder / "clicks"
    run(prefix / "bin" / "millrace", "plugin", "new", "clicks", "--kind", "operators", "--into", project)
    run(
        "cmake", "-S", project, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER=g++",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON",
    )  # fmt: skip
    run("cmake", "--build", folder / "build", "--target", "package")
    (made,) = (folder / "build").glob("millrace-plugin-clicks_*.deb")
    return made


def test_a_plugin_of_ones_own_comes_is_used_and_goes(machine, tally):
    """Its package, a file in conf.d, a reload; and back."""
    machine.install("millrace")
    machine.run("systemctl start millrace && millrace topic create visits && millrace topic create counts")
    before = pid(machine)
    machine.install(machine.put(tally, "/tmp"))
    assert "clicks" in machine.run("millrace plugin list")
    machine.run(
        "printf '[stream.counted]\\nsources = [\"visits\"]\\nsink = \"counts\"\\n[[stream.counted.steps]]\\n"
        "operator = \"clicks\"\\nevery_ms = 1\\n' > /etc/millrace/conf.d/counted.toml"
    )
    machine.run("systemctl reload millrace")
    machine.run(
        f"for key in a a b; do echo $key:x | {PRODUCE.replace('orders', 'visits')} -K:; done; "
        "timeout 60 kcat -b 127.0.0.1:9092 -t counts -C -c 1 -o beginning -f '%k %s\\n' | grep -q '^a '"
    )
    machine.run("rm /etc/millrace/conf.d/counted.toml && systemctl reload millrace")
    assert "counted" not in machine.run("millrace stream list")
    machine.run("apt-get -qq remove millrace-plugin-clicks")
    assert "clicks" not in machine.run("millrace plugin list")
    assert pid(machine) == before


def test_the_sdk_builds_the_examples_with_the_compiler_of_debian(machine):
    machine.install("millrace", "millrace-sdk")
    assert machine.run("g++ -dumpversion").strip() == "12"
    for name in EXAMPLES:
        machine.run(
            f"g++ -std=c++23 -O2 -shared -fPIC -fvisibility=hidden -o /tmp/{name}.so "
            f"/usr/share/millrace/examples/{name}.cc -lmillrace_sdk"
        )
        assert "fits this kernel" in machine.run(f"millrace plugin check /tmp/{name}.so")
