"""The operator's day: installed, started, used, upgraded, removed, purged on a Debian that knows none of it."""

import re

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


def test_the_sdk_builds_the_examples_with_the_compiler_of_debian(machine):
    machine.install("millrace", "millrace-sdk")
    assert machine.run("g++ -dumpversion").strip() == "12"
    for name in EXAMPLES:
        machine.run(
            f"g++ -std=c++23 -O2 -shared -fPIC -fvisibility=hidden -o /tmp/{name}.so "
            f"/usr/share/millrace/examples/{name}.cc -lmillrace_sdk"
        )
        assert "fits this kernel" in machine.run(f"millrace plugin check /tmp/{name}.so")
