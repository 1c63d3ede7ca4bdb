"""The .rpm packages, as far as Debian's rpm goes: what they say, and installed over a Debian of their own, where their
scripts run."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import TREE
from test_packages import libraries_needed, package, run, unpacked

CONFIG = "/etc/millrace/millrace.toml"
EDIT = '\n[log]\nlevel = "debug"\n'

# As an earlier version was: the same configuration file, with other content.
EARLIER_SPEC = """
Name: millrace
Version: 0.0.1
Release: 1
Summary: an earlier version
License: Apache-2.0
BuildArch: x86_64
%description
%install
mkdir -p %{buildroot}/etc/millrace
echo '# of the earlier version' >%{buildroot}/etc/millrace/millrace.toml
%files
%config(noreplace) /etc/millrace/millrace.toml
"""


def rpm(packages: Path, name: str) -> Path:
    (path,) = packages.glob(f"{name}-[0-9]*.rpm")
    return path


def said(package: Path, what: str) -> str:
    return run("rpm", "--query", "--package", what, package)


def test_they_need_what_their_files_need(packages, tmp_path):
    server, plugin = rpm(packages, "millrace"), rpm(packages, "millrace-plugin-zookeeper")
    version = run("rpm", "-qp", "--queryformat", "%{VERSION}", server)
    for path, beside in ((server, {"systemd", "/bin/sh"}), (plugin, {f"millrace = {version}"})):
        name = run("rpm", "-qp", "--queryformat", "%{NAME}", path)
        files = unpacked(package(packages, name), tmp_path / name)  # the same files
        needed = set(said(path, "--requires").splitlines())
        libraries = {found[1] for one in needed if (found := re.match(r"(\S+\.so[.\d]*)\(", one))}
        assert libraries - {"ld-linux-x86-64.so.2"} == libraries_needed(files) - {"ld-linux-x86-64.so.2"}
        others = {one for one in needed if ".so" not in one and not one.startswith(("rpmlib(", "rtld(", "config("))}
        assert others == beside
    assert "libzookeeper_mt.so.2()(64bit)" in said(plugin, "--requires")
    assert said(server, "--conflicts") == ""
    assert said(server, "--configfiles").split() == [CONFIG]


def test_their_scripts_are_those_of_the_tree(packages):
    kept = {
        "postinstall scriptlet": "post",
        "preuninstall scriptlet": "preun",
        "postuninstall scriptlet": "postun",
    }
    scripts = said(rpm(packages, "millrace"), "--scripts").replace("\n\n", "\n")
    for title, name in kept.items():
        script = (TREE / "packaging" / "rpm" / name).read_text().strip()
        assert f"{title} (using /bin/sh):\n{script}" in scripts
    for name in ("millrace-plugin-zookeeper", "millrace-sdk"):
        assert said(rpm(packages, name), "--scripts") == ""


@pytest.fixture
def root(debian, tmp_path):
    """A Debian that stays as it was, with nothing in rpm's eyes."""
    for name in ("upper", "work", "root"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={debian},upperdir={tmp_path / 'upper'},workdir={tmp_path / 'work'}"
    merged = tmp_path / "root"
    run("mount", "-t", "overlay", "overlay", "-o", layers, merged)
    run("mount", "-t", "proc", "proc", merged / "proc")  # systemd's tools look into it
    try:
        yield merged
    finally:
        run("umount", merged / "proc", merged)


def change(root: Path, *words: object) -> str:
    """By rpm, in that root; what its scripts say is an error."""
    done = subprocess.run(
        ["rpm", f"--root={root}", "--nodeps", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def inside(root: Path, *command: str) -> str:
    return run("chroot", root, *command)


def test_installed_verified_and_erased_they_keep_data_and_an_edited_configuration(packages, root):
    assert "scriptlet failed" not in change(root, "--install", *sorted(packages.glob("*.rpm")))
    change(root, "--verify", "millrace", "millrace-plugin-zookeeper", "millrace-sdk")
    assert inside(root, "stat", "-c", "%U %a", "/var/lib/millrace").split() == ["millrace", "750"]
    assert inside(root, "systemctl", "is-enabled", "millrace.service").strip() == "enabled"

    record = root / "var/lib/millrace/data/orders-0/00000000000000000000.log"
    record.parent.mkdir(parents=True)
    record.write_text("a record")
    config = root / CONFIG.lstrip("/")
    edited = config.read_text() + EDIT
    config.write_text(edited)
    change(root, "--erase", "millrace", "millrace-plugin-zookeeper", "millrace-sdk")
    assert not (root / "usr/bin/millraced").exists()
    assert not (root / "usr/include/millrace").exists()
    assert not list((root / "etc/systemd/system").rglob("millrace*"))
    assert record.read_text() == "a record"
    assert config.with_suffix(".toml.rpmsave").read_text() == edited


@pytest.fixture
def earlier(tmp_path) -> Path:
    (tmp_path / "earlier.spec").write_text(EARLIER_SPEC)
    run("rpmbuild", "-bb", f"--define=_topdir {tmp_path / 'rpm'}", tmp_path / "earlier.spec")
    (package,) = (tmp_path / "rpm" / "RPMS").rglob("*.rpm")
    return package


def test_an_upgrade_keeps_an_edited_configuration(packages, root, earlier):
    change(root, "--install", earlier)
    config = root / CONFIG.lstrip("/")
    edited = config.read_text() + EDIT
    config.write_text(edited)
    change(root, "--upgrade", rpm(packages, "millrace"))
    assert config.read_text() == edited
    ours = (TREE / "configs" / "millrace.toml").read_text()
    assert config.with_suffix(".toml.rpmnew").read_text() == ours


def test_an_upgrade_renews_a_configuration_that_nobody_edited(packages, root, earlier):
    change(root, "--install", earlier)
    change(root, "--upgrade", rpm(packages, "millrace"))
    config = root / CONFIG.lstrip("/")
    assert config.read_text() == (TREE / "configs" / "millrace.toml").read_text()
