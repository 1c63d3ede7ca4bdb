"""Fixtures: the packages that packaging/build left in build/packages, or in the folder that the variable
MILLRACE_PACKAGES names, and machines to install them on."""

import os
from pathlib import Path

import pytest
from debian import Machine, assert_root, make_root

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def packages() -> Path:
    folder = Path(os.environ.get("MILLRACE_PACKAGES", TREE / "build" / "packages"))
    assert list(folder.glob("*.deb")), "there are no packages: packaging/build"
    return folder


@pytest.fixture(scope="session")
def debian(packages, tmp_path_factory) -> Path:
    """The root folder of all machines."""
    assert_root()
    root = tmp_path_factory.mktemp("debian") / "root"
    make_root(root, sorted(packages.glob("*.deb")))
    return root


@pytest.fixture
def machine(debian, packages, tmp_path):
    """Booted for one test."""
    booted = Machine(debian, packages, tmp_path)
    yield booted
    booted.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows what its machine's broker said."""
    outcome = yield
    report = outcome.get_result()
    machine = getattr(item, "funcargs", {}).get("machine")
    if report.when == "call" and report.failed and machine is not None:
        report.sections.append(("the broker's journal", machine.journal()))
        report.sections.append(("the machine's console", machine.log_tail()))
