"""The packages are the same bytes wherever and by whomever they are built: for `tests/run reproducible`, which has the
time to build all of them a second time."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import TREE
from test_packages import run

OTHER_HABITS = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C", "HOME": "/nonexistent", "CCACHE_DISABLE": "1"}


def sums(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def date_of_the_commit() -> str:
    return run("git", "-C", TREE, "log", "-1", "--format=%ct").strip()


@pytest.mark.slow
def test_built_again_elsewhere_by_somebody_else_they_are_the_same(packages, tmp_path):
    tree = tmp_path / "elsewhere"
    for name in run("git", "-C", TREE, "ls-files").splitlines():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / name, tree / name)
    habits = OTHER_HABITS | {"SOURCE_DATE_EPOCH": date_of_the_commit()}
    built = subprocess.run(
        [tree / "packaging" / "build"],
        env=os.environ | habits, umask=0o077, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    assert sums(tree / "build" / "packages") == sums(packages)
