"""The HTTP side of a broker, as curl would use it."""

import http.client
import json
import threading
import time
from dataclasses import dataclass

from harness.exposition import Exposition

DEADLINE_SECONDS = 60
LOOK_SECONDS = 0.02
_never = threading.Event()

OF_COMPACTED_PARTITIONS = {
    f"millrace_partition_{name}"
    for name in (
        "clean_bytes",
        "cleanable_bytes",
        "cleaned_offset",
        "compacted_timestamp_seconds",
        "compacting_percent",
        "uncleanable",
    )
}
"""Metrics that are there once compaction has looked at a partition."""


@dataclass
class Answer:
    status: int
    fields: dict[str, str]
    text: str

    def json(self) -> dict:
        assert self.fields["content-type"] == "application/json", self.fields
        return json.loads(self.text)

    def is_of_a_start(self) -> bool:
        """As any path says it while the broker starts, or as /healthz does."""
        if self.status != 503:
            return False
        said = self.json()
        return "starting" in (said.get("error"), said.get("status"))


class Http:
    def __init__(self, address: str):
        self.address = address

    def ask(self, method: str, path: str, body: object = None, **fields: str) -> Answer:
        """`body` goes as JSON; `fields` are header fields, with _ for -. A broker listens before all
        of it serves: one that is starting says so, and is asked again."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            answer = self._ask_once(method, path, body, fields)
            if not answer.is_of_a_start() or time.monotonic() > deadline:
                return answer
            _never.wait(LOOK_SECONDS)  # the pause between two looks

    def _ask_once(self, method: str, path: str, body: object, fields: dict[str, str]) -> Answer:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        data = None
        if body is not None:
            data = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.address, timeout=DEADLINE_SECONDS)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str) -> dict:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json()

    def metrics(self) -> Exposition:
        answer = self.ask("GET", "/metrics")
        assert answer.status == 200, answer
        assert answer.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return Exposition(answer.text)
