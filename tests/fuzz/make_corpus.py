#!/usr/bin/env python3
"""Writes what the fuzzers start from: make_corpus.py FOLDER.

Each driver gets a folder of inputs in the form that it reads, taken from the golden data and the ready configurations.
"""

import gzip
import hashlib
import json
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
GOLDEN = SOURCE / "tests" / "golden"
INPUT_BYTES_MAX = 16_384


class Corpus:
    def __init__(self, folder: Path):
        self.folder = folder

    def add(self, driver: str, content: bytes) -> None:
        if len(content) > INPUT_BYTES_MAX:
            return
        folder = self.folder / driver
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


def json_lines(path: Path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        yield from map(json.loads, lines)


def add_requests(corpus: Corpus) -> None:
    for session in sorted((GOLDEN / "sessions").glob("*.jsonl")):
        for event in json_lines(session):
            if event["dir"] == "req" and not event.get("raw"):
                corpus.add("request", bytes.fromhex(event["hex"]))


def add_messages(corpus: Corpus, names: list[str]) -> None:
    """`names` in the order of the driver's table: two bytes of an input choose one of them."""
    index = {name: at for at, name in enumerate(names)}
    for vectors in sorted((GOLDEN / "wire").glob("*.jsonl.gz")):
        for vector in json_lines(vectors):
            suffix = {"req": "Request", "resp": "Response"}.get(vector["kind"], "")
            at = index.get(vector["api"] + suffix)
            if at is not None:
                head = bytes([at % 256, at // 256, vector["version"] & 0xFF])
                corpus.add("message", head + bytes.fromhex(vector["hex"]))


def entries_of(log: bytes):
    """Batches and messages as they follow each other in a segment."""
    at = 0
    while at + 12 <= len(log):
        size = 12 + int.from_bytes(log[at + 8 : at + 12], "big")
        yield log[at : at + size]
        at += size


def add_logs(corpus: Corpus) -> None:
    for path in sorted((GOLDEN / "segments").glob("*/*/*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        name = path.name.removesuffix(".gz")
        if "__cluster_metadata" in path.parent.name:
            corpus.add("metadata_log", content[:INPUT_BYTES_MAX])
        if name.endswith(".log"):
            corpus.add("segment", content[:INPUT_BYTES_MAX])
            for at, entry in zip(range(4), entries_of(content)):
                for choice in (0, 1 + at, 2, 20):
                    corpus.add("batch", bytes([choice, 1]) + entry)
                add_compressed(corpus, entry)
        kinds = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
        for at, kind in enumerate(kinds):
            if name.endswith(kind):
                corpus.add("index", bytes([at]) + content)


def add_compressed(corpus: Corpus, entry: bytes) -> None:
    if len(entry) > 61 and entry[16] == 2 and 1 <= entry[22] & 7 <= 4:
        corpus.add("codec", bytes([(entry[22] & 7) - 1]) + entry[61:])


def add_configs(corpus: Corpus) -> None:
    for path in sorted(SOURCE.glob("configs/*.toml")):
        corpus.add("config", path.read_bytes())
    corpus.add("config", b'broker.data="/tmp/x"\n[defaults]\n"num.partitions" = 3\n')


HTTP_REQUESTS = (
    b"GET /metrics?x=1#y HTTP/1.1\r\nHost: localhost:9644\r\n\r\n",
    b"GET http://a:1/admin/topics HTTP/1.1\r\nHost: [::1]:1\r\nConnection: close\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\n\r\nHEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"POST /admin/topics HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n"
    b"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"PATCH /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
    b"2;x=1\r\nab\r\n3\r\ncde\r\n0\r\nX: 1\r\n\r\n",
)


def add_http_requests(corpus: Corpus) -> None:
    """The first byte of an input is the size of the pieces that it is received in."""
    for request in (*HTTP_REQUESTS, b"".join(HTTP_REQUESTS)):
        for piece_bytes in (0, 255):
            corpus.add("http_request", bytes([piece_bytes]) + request)


def main() -> None:
    corpus = Corpus(Path(sys.argv[1]))
    add_requests(corpus)
    add_messages(corpus, sys.stdin.read().split())
    add_logs(corpus)
    add_configs(corpus)
    add_http_requests(corpus)
    for kept in sorted((SOURCE / "tests" / "fuzz" / "found").glob("*/*")):
        corpus.add(kept.parent.name, kept.read_bytes())


if __name__ == "__main__":
    main()
