"""Apache Kafka's own command line tools, from its released jars."""

import subprocess

from harness import maven

TOOL_SECONDS_MAX = 120
PACKAGE = "org.apache.kafka.tools."


def run(tool: str, address: str, *words: object) -> subprocess.CompletedProcess:
    """`tool` is a class: "TopicCommand" is what kafka-topics.sh runs."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", maven.classpath("tools"), PACKAGE + tool, "--bootstrap-server", address]
    return subprocess.run(
        [*command, *map(str, words)], capture_output=True, text=True, timeout=TOOL_SECONDS_MAX
    )


def output(tool: str, address: str, *words: object) -> str:
    """Of a run that must succeed."""
    done = run(tool, address, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
