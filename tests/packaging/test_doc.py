"""The manual, as an administrator meets it: all commands of each chapter, those for root and those
for users, as they stand there and in order, on a Debian that has what the chapter takes for granted.
Those for a cluster are run by tests/clients/test_documentation.py."""

import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

from harness.documentation import chapters  # noqa: E402: the path is set above

CHAPTERS = {
    name: [block for block in blocks if block.kind in ("sh", "sh root")]
    for name, blocks in chapters().items()
}


def installs(blocks) -> bool:
    """Whether it begins with the package."""
    return "install --yes ./millrace_" in blocks[0].text


@pytest.mark.parametrize("chapter", [name for name, blocks in CHAPTERS.items() if blocks])
def test_its_commands(machine, chapter):
    blocks = CHAPTERS[chapter]
    machine.run(
        # The folder that the packages are in; what the recommendations of others need is not at hand.
        "mkdir /srv/work && cp /packages/*.deb /srv/work && "
        "echo 'APT::Install-Recommends \"false\";' > /etc/apt/apt.conf.d/90test && "
        'echo "127.0.1.1 $(hostname)" >> /etc/hosts'
    )
    if not installs(blocks):
        machine.install("millrace")
        machine.run("systemctl start millrace")
    for block in blocks:
        command = f"cd /srv/work && bash -euo pipefail -c {shlex.quote(block.text)}"
        try:
            written = machine.run(f"{{ {command} ; }} 2>/srv/errors")
        except AssertionError as failure:
            raise AssertionError(f"{block}: {failure}\n{machine.run('cat /srv/errors')}") from None
        block.check(written)
