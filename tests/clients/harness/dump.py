"""Apache Kafka's dump tool: what it reads in a partition's files, and what it complains of."""

import re
import subprocess
from pathlib import Path

from harness import maven

# What the tool prints when an index and its log do not agree, or a file is not what it should be.
# That offset -1 is followed by a segment's first one it says of every segment but the first.
COMPLAINT = re.compile(
    r"mismatch|^ +\d+ is followed by|not found|out of order|exception|invalid bytes|corrupt",
    re.IGNORECASE,
)
RECORD = re.compile(r"^\| offset: |^baseOffset: ")
SECONDS_MAX = 120


def dump(files: list[Path], *options: str) -> str:
    """The tool's output; fails on a complaint."""
    done = subprocess.run(
        [
            "java",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            maven.classpath("tools"),
            "org.apache.kafka.tools.DumpLogSegments",
            *options,
            "--files",
            ",".join(map(str, files)),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    complaints = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if COMPLAINT.search(line) and not RECORD.search(line)
    ]
    assert not complaints, complaints[:5]
    return done.stdout
