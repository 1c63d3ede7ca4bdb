"""`millrace`, our own command line tool; to a broker it is one more Kafka client."""

import json
import subprocess

from harness.broker import PREFIX
from harness.client import DEADLINE_SECONDS


class ToolFailed(Exception):
    def __init__(self, code: int, said: str):
        super().__init__(f"exit code {code}: {said}")
        self.code = code


class Tool:
    def __init__(self, address: str):
        self.address = address

    def run(self, *words: str, stdin: bytes = b"") -> list[dict]:
        """The JSON objects that the command prints, one a line."""
        done = subprocess.run(
            [PREFIX / "bin" / "millrace", "--bootstrap", self.address, "--output", "json", *words],
            input=stdin,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        if done.returncode != 0:
            raise ToolFailed(done.returncode, done.stderr.decode(errors="replace").strip())
        return [json.loads(line) for line in done.stdout.splitlines()]
