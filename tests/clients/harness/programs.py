"""Builds the programs in drivers/ below build/clients, each again when a source of it changes."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness import maven
from harness.lock import making
from harness.paths import BUILD, DRIVERS

BUILD_SECONDS_MAX = 900
PYTHON = Path(sys.prefix) / "bin" / "python"


def java(program: str, profile: str, *, with_groups: bool = True) -> list[object]:
    """A class of drivers/java, compiled against the jars of that profile."""
    jars = maven.classpath(profile)
    names = ("Lines", "Member", program) if with_groups else ("Lines", program)
    sources = [DRIVERS / "java" / f"{name}.java" for name in names]
    folder = BUILD / "clients" / f"java-{profile}-{program}"

    def build() -> None:
        _run("javac", "-nowarn", "-cp", jars, "-d", folder, *sources)

    _once(folder, [*sources, maven.POM], build)
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *options, "-cp", f"{folder}:{jars}", program]


def go(program: str) -> list[object]:
    """A command of the module drivers/go."""
    source, folder = DRIVERS / "go", BUILD / "clients" / "go"
    tool = shutil.which("go") or str(PYTHON.parent / "go")

    def build() -> None:
        _run(tool, "build", "-o", f"{folder}/", "./...", cwd=source)

    _once(folder, [*source.rglob("*.go"), source / "go.mod", source / "go.sum"], build)
    return [folder / program]


def rust(program: str) -> list[object]:
    """The crate drivers/rust."""
    source, folder = DRIVERS / "rust", BUILD / "clients" / "rust"

    def build() -> None:
        options = ["--quiet", "--locked", "--release", "--target-dir", folder]
        _run("cargo", "build", *options, cwd=source)

    _once(folder, [*source.rglob("src/*.rs"), source / "Cargo.toml", source / "Cargo.lock"], build)
    return [folder / "release" / program]


def node(program: str) -> list[object]:
    """A script of drivers/node, copied beside the packages it needs."""
    source, folder = DRIVERS / "node", BUILD / "clients" / "node"
    files = [source / "package.json", source / "package-lock.json", *source.glob("*.js")]

    def build() -> None:
        for file in files:
            shutil.copy2(file, folder)
        _run("npm", "ci", "--silent", "--omit=optional", "--no-audit", "--no-fund", cwd=folder)

    _once(folder, files, build)
    return ["node", folder / program]


def python(script: str) -> list[object]:
    """A script of drivers/python, with the packages that the tests run with."""
    return [PYTHON, DRIVERS / "python" / script]


def old_python(script: str) -> list[object]:
    """The same in an environment of its own, whose packages would be in the way of today's."""
    wanted, folder = DRIVERS / "python" / "requirements-old.txt", BUILD / "clients" / "python-old"

    def build() -> None:
        _run(PYTHON, "-m", "venv", "--clear", folder)
        _run(folder / "bin" / "pip", "--quiet", "install", "--requirement", wanted)

    _once(folder, [wanted], build)
    return [folder / "bin" / "python", DRIVERS / "python" / script]


def ancient_python(script: str) -> list[object]:
    """With kafka-python 0.9, which has an argument named as what is a keyword by now, and ends a
    generator as none may any more: where an answer is cut within a message."""
    wanted, folder = DRIVERS / "python" / "requirements-0.9.txt", BUILD / "clients" / "python-0.9"

    def build() -> None:
        _run(PYTHON, "-m", "venv", "--clear", folder)
        _run(folder / "bin" / "pip", "--quiet", "install", "--requirement", wanted)
        for file in folder.glob("lib/*/site-packages/kafka/producer/*.py"):
            file.write_text(re.sub(r"\basync\b", "async_", file.read_text()))
        for file in folder.glob("lib/*/site-packages/kafka/protocol.py"):
            file.write_text(file.read_text().replace("raise StopIteration()", "return"))

    _once(folder, [wanted], build)
    return [folder / "bin" / "python", DRIVERS / "python" / script]


def _once(folder: Path, sources: list[Path], build) -> None:
    """Runs `build` into `folder` unless it was built from the same sources."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()
    stamp = folder.with_name(f"{folder.name}.built-from")
    with making(folder):
        if stamp.exists() and stamp.read_text() == digest:
            return
        folder.mkdir(parents=True, exist_ok=True)
        build()
        stamp.write_text(digest)


def _run(*words: object, cwd: Path | None = None) -> None:
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    assert done.returncode == 0, f"{words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
