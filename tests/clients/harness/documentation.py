"""The chapters of packaging/doc, and the commands in them.

A fence tells what stands in it:

    ```sh            commands, run by tests/clients/test_documentation.py against a broker, and by
                     tests/packaging/test_doc.py on a Debian that has the package
    ```sh root       commands of an administrator: by tests/packaging/test_doc.py alone
    ```sh cluster    commands for a cluster: by tests/clients/test_documentation.py against three brokers
    ```text          what the commands above it write; … stands for anything
    ```toml          a configuration, checked by millraced --check
    ```json          what a tool of ours answers; whoever writes it down shows that it is so

Those of a chapter are run in order. Any other fence is a mistake.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.paths import SOURCE

FOLDER = SOURCE / "packaging" / "doc"
KINDS = ("sh", "sh root", "sh cluster", "text", "toml", "json")
PREPARED = {
    "symptoms": "millrace topic create orders --partitions 3\n"
    "seq 10 | millrace produce orders\n"
    "timeout 60 kcat -b 127.0.0.1:9092 -X auto.offset.reset=earliest -c 10 -q -G readers orders > /dev/null\n"
}
"""What a chapter takes for granted, in its own commands: somebody has used the broker before."""

VERB = re.compile(r"millrace(?: [a-z]+)*")
UNFENCED = re.compile(r" {4}(millraced?|systemctl|journalctl|apt-get|kcat|curl) (?!.*[A-Z]{3})")
"""A command as an indented block; what has a word in capitals to be replaced is none."""
FENCE = re.compile(r"^```(.*)$")


@dataclass
class Block:
    chapter: str
    line: int
    kind: str
    text: str
    output: str | None = None
    """What it writes, as the chapter says it."""

    def __str__(self) -> str:
        return f"packaging/doc/{self.chapter}.md:{self.line}"

    def check(self, written: str) -> None:
        """Fails where what was written is not what the chapter says."""
        if self.output is None:
            return
        parts = [re.escape(part) for part in _words(self.output).split("…")]
        assert re.fullmatch(".*?".join(parts), _words(written), re.DOTALL), (
            f"{self}: it says\n{self.output}\nand came\n{written}"
        )


def _words(text: str) -> str:
    """The width of a table's columns does not matter."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def blocks_of(file: Path) -> list[Block]:
    blocks: list[Block] = []
    open_block: Block | None = None
    for number, line in enumerate(file.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if open_block is not None and fence is None:
            open_block.text += line + "\n"
        elif open_block is not None:
            assert fence[1] == "", f"{file}:{number}: the fence of line {open_block.line} is not closed"
            if open_block.kind == "text":
                before = blocks[-1] if blocks else None
                assert before and before.kind.startswith("sh") and before.output is None, (
                    f"{open_block}: no command above it writes that"
                )
                before.output = open_block.text
            else:
                blocks.append(open_block)
            open_block = None
        elif fence is not None:
            assert fence[1] in KINDS, f"{file}:{number}: {fence[1]!r} is none of {KINDS}"
            open_block = Block(file.stem, number, fence[1], "")
        else:
            assert not UNFENCED.match(line), f"{file}:{number}: no test runs this: it has no fence"
    assert open_block is None, f"{open_block}: not closed"
    return blocks


def verbs_of(file: Path) -> set[str]:
    """The verbs that the text names, as `millrace topic alter`."""
    text = re.sub(r"(?ms)^```.*?^```$", "", file.read_text())
    spans = re.findall(r"`(millrace (?:[^`])+)`", text)
    return {" ".join(VERB.match(" ".join(span.split()))[0].split()) for span in spans}


def chapters() -> dict[str, list[Block]]:
    """The blocks of each chapter, in order, behind what it takes for granted."""
    return {
        file.stem: [
            *(Block(file.stem, 0, "sh", text) for name, text in PREPARED.items() if name == file.stem),
            *blocks_of(file),
        ]
        for file in sorted(FOLDER.glob("*.md"))
    }
