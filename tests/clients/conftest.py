"""Options and fixtures: which broker is under test, one shared broker for the tests that only use
it, brokers of their own for those that hurt it, and every client."""

import re

import pytest

from harness.broker import ApacheKafka, Broker, Millrace
from harness.client import Client
from harness.confluent import Confluent
from harness.java import Java
from harness.kcat import Kcat

CLIENTS = {kind.name: kind for kind in (Kcat, Confluent, Java)}
PARTITIONS = 3


def pytest_addoption(parser):
    parser.addoption(
        "--broker",
        choices=("millrace", "kafka"),
        default="millrace",
        help="what the tests run against; kafka shows that the tests are right",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=3,
        help="how often the crash tests kill a broker; more is a soak",
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--broker") == "kafka":
        ours = [item for item in items if item.get_closest_marker("millrace")]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def broker_kind(request) -> type[Broker]:
    return {"millrace": Millrace, "kafka": ApacheKafka}[request.config.getoption("--broker")]


@pytest.fixture(scope="session")
def broker(broker_kind, tmp_path_factory):
    """Shared by all tests that only send and read; each uses topics of its own."""
    shared = broker_kind(tmp_path_factory.mktemp("shared"), {"num.partitions": PARTITIONS})
    try:
        yield shared.start()
        shared.end()
    finally:
        shared.close()


@pytest.fixture
def own_broker(broker_kind, tmp_path):
    """Started for one test, which may kill it."""
    own = broker_kind(tmp_path / "broker", {"num.partitions": PARTITIONS})
    try:
        yield own.start()
        own.end()
    finally:
        own.close()


@pytest.fixture(scope="session")
def clients(broker) -> dict[str, Client]:
    """All clients of the shared broker by name."""
    started = {name: kind(broker.address) for name, kind in CLIENTS.items()}
    yield started
    for client in started.values():
        client.close()


@pytest.fixture(params=CLIENTS)
def client(request, clients) -> Client:
    return clients[request.param]


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
