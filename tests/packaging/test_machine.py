"""The operator's day: installed, started, used, upgraded, removed, purged on a Debian that knows none of it."""

import re
from pathlib import Path

PRODUCE = "kcat -b 127.0.0.1:9092 -t orders -P -X acks=all"
CONSUME = "timeout 60 kcat -b 127.0.0.1:9092 -t orders -C -e -q -o beginning"

def start_with_a_message(machine) -> None:
    machine.install("millrace")
    machine.run("systemctl start millrace")
    machine.run("millrace topic create orders")
    machine.run(f"echo hello | {PRODUCE}")


def pid(machine) -> str:
    return machine.run("systemctl show --property=MainPID --value millrace").strip()


def processes(machine) -> str:
    """Of brokers."""
    return machine.run("find /proc -maxdepth 2 -name exe -lname '*/millraced*' 2>/dev/null; true")


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
    folders = "/var/lib/millrace /var/lib/millrace/data"
    assert set(machine.run(f"stat -c '%U:%G %a' {folders}").splitlines()) == {"millrace:millrace 750"}


def test_somebody_at_a_terminal_completes_words_and_sees_a_table(machine):
    start_with_a_message(machine)
    tmux = "tmux -u -f /dev/null -S /tmp/tmux"

    def type_and_see(keys: str, line: str) -> None:
        machine.run(f"{tmux} send-keys -t window {keys}")
        machine.until(f"{tmux} capture-pane -p -t window | grep -xE '{line} *'")

    machine.run(f"{tmux} new-session -d -s window -x 80 -y 50 'PS1=: exec bash --login'")
    type_and_see("\"PS1=':'\" Enter", ":")
    type_and_see("'millrace topic desc' Tab", ":millrace topic describe")
    # Names of topics come from the broker.
    type_and_see("'ord' Tab", ":millrace topic describe orders")
    type_and_see("Enter", "topic orders, id .*")
    type_and_see("'complete -p millrace' Enter", "complete -F _millrace millrace")


def test_removed_it_keeps_data_and_configuration(machine):
    start_with_a_message(machine)
    machine.run("apt-get -qq remove millrace")
    assert processes(machine) == ""
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
