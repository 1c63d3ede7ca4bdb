"""The command line tool, as a script would use it."""

import json
import subprocess
from dataclasses import dataclass

from harness.broker import PREFIX

TOOL_SECONDS_MAX = 120


@dataclass
class Outcome:
    code: int
    output: str
    errors: str


def run(*words: object, stdin: str = "", prefix=PREFIX) -> Outcome:
    done = subprocess.run(
        [str(prefix / "bin" / "millrace"), *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS_MAX,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


class Tool:
    """Bound to one broker; every call must succeed."""

    def __init__(self, address: str):
        self.address = address

    def text(self, *words: object, stdin: str = "") -> str:
        outcome = run("--bootstrap", self.address, *words, stdin=stdin)
        assert outcome.code == 0, outcome.errors
        return outcome.output

    def json_lines(self, *words: object, stdin: str = "") -> list[dict]:
        return [json.loads(line) for line in self.text("-o", "json", *words, stdin=stdin).splitlines()]
