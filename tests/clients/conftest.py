"""Options and fixtures: which broker is under test, one shared broker for the tests that only use
it, brokers of their own for those that hurt it, and every client."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.broker import ApacheKafka, ApacheKafka39, Broker, Millrace
from harness.client import ABILITIES, Client
from harness.fleet import KINDS, Fleet, chosen
from harness.members import FAST
from harness.records import CODECS

PARTITIONS = 3
BROKERS = {"millrace": Millrace, "kafka": ApacheKafka, "kafka-3.9": ApacheKafka39}
LEFT_OUT = pytest.StashKey[Counter]()
"""(client, what it cannot) → tests left out for that."""


def pytest_addoption(parser):
    parser.addoption(
        "--broker",
        choices=tuple(BROKERS),
        default="millrace",
        help="what the tests run against; kafka, and for old clients and formats kafka-3.9, show "
        "that the tests are right",
    )
    parser.addoption(
        "--clients",
        default="ci",
        help="ci, all, or names with commas between them",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=3,
        help="how often the crash tests kill a broker; more is a soak",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "all_clients: needs them all; run with --clients all alone")


def pytest_generate_tests(metafunc):
    """A test that asks for `client` or `client_kind` is run for each client of the run."""
    for name in {"client", "client_kind"} & set(metafunc.fixturenames):
        names = chosen(metafunc.config.getoption("--clients"))
        metafunc.parametrize(name, names, indirect=True)


def pytest_collection_modifyitems(config, items):
    left_out = config.stash.setdefault(LEFT_OUT, Counter())
    broker = config.getoption("--broker")
    kept, others = [], []
    for item in items:
        lacking = missing_ability(item)
        if lacking is not None:
            left_out[lacking] += 1
        elsewhere = broker != "millrace" and item.get_closest_marker("millrace")
        too_new = broker == "kafka" and item.get_closest_marker("old_formats")
        too_few = config.getoption("--clients") != "all" and item.get_closest_marker("all_clients")
        (others if lacking or elsewhere or too_new or too_few else kept).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def missing_ability(item) -> tuple[str, str] | None:
    """The client of the test and what it lacks for it."""
    params = getattr(item, "callspec", None) and item.callspec.params
    name = params and (params.get("client") or params.get("client_kind"))
    if not name:
        return None
    needed = [ability for mark in item.iter_markers("needs") for ability in mark.args]
    for ability in needed:
        assert ability in ABILITIES or ability in CODECS, f"{item.nodeid}: no ability {ability}"
    codecs = [params["codec"]] if "codec" in params else []
    if params.get("in_flight"):
        needed.append("in-flight")
    for wanted in needed + codecs:
        if wanted not in KINDS[name].abilities and wanted not in KINDS[name].codecs:
            return name, wanted
    return None


def pytest_sessionfinish(session):
    """A worker of `-n` tells its controller, which collects nothing, what was left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        left_out = session.config.stash.get(LEFT_OUT, Counter())
        output["left out"] = [(who, what, count) for (who, what), count in left_out.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each worker collects all tests, so what one says is the whole."""
    for who, what, count in getattr(node, "workeroutput", {}).get("left out", []):
        node.config.stash.setdefault(LEFT_OUT, Counter())[who, what] = count


def pytest_terminal_summary(terminalreporter, config):
    """What was left out, client by client: nothing is missing in silence."""
    left_out = config.stash.get(LEFT_OUT, Counter())
    if left_out:
        terminalreporter.section("left out for what a client cannot")
        for name in chosen(config.getoption("--clients")):
            lacking = {what: count for (who, what), count in left_out.items() if who == name}
            if lacking:
                words = ", ".join(f"{what} ({lacking[what]})" for what in sorted(lacking))
                terminalreporter.line(f"{name}: {words}")


@pytest.fixture(scope="session")
def broker_kind(request) -> type[Broker]:
    return BROKERS[request.config.getoption("--broker")]


@contextmanager
def running(broker: Broker) -> Iterator[Broker]:
    try:
        yield broker.start()
        broker.end()
    finally:
        broker.close()


@pytest.fixture(scope="session")
def broker(broker_kind, tmp_path_factory):
    """Shared by all tests that only send and read; each uses topics of its own."""
    with running(broker_kind(tmp_path_factory.mktemp("shared"), {"num.partitions": PARTITIONS})) as shared:
        yield shared


@pytest.fixture
def own_broker(broker_kind, tmp_path):
    """Started for one test, which may kill it."""
    with running(broker_kind(tmp_path / "broker", {"num.partitions": PARTITIONS})) as own:
        yield own


@pytest.fixture(scope="session")
def fast_broker(broker_kind, tmp_path_factory):
    """Shared by tests of groups: whoever dies is found dead soon."""
    with running(broker_kind(tmp_path_factory.mktemp("groups"), FAST)) as shared:
        yield shared


@pytest.fixture
def own_fast_broker(broker_kind, tmp_path):
    with running(broker_kind(tmp_path / "broker", FAST)) as own:
        yield own


@pytest.fixture(scope="session")
def clients(broker, request):
    """The clients of the run, for the shared broker."""
    fleet = Fleet(broker.address, chosen(request.config.getoption("--clients")))
    yield fleet
    fleet.close()


@pytest.fixture
def client(request, clients) -> Client:
    return clients[request.param]


@pytest.fixture
def client_kind(request) -> type[Client]:
    return KINDS[request.param]


@pytest.fixture
def topic(request) -> str:
    """A name that tells in a broker's log which test it is of."""
    return re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the end of its broker's log."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Broker):
                report.sections.append(("broker's log", value.log_tail()))
