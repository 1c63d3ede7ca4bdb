"""Commands in, answers out, as ../README.md describes them; the same for every client in Python."""

import base64
import select
import sys


class Failure(Exception):
    """An answer of the broker that the client reports without raising it."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.errno = code


class Lines:
    """A subclass has a method for each command it knows, named as the command. What the method
    returns are the lines of the answer."""

    def work(self) -> bool:
        """What is done while no command comes; False when there is nothing to do."""
        return False

    def _next(self) -> str:
        # Nothing is left in the text layer's buffer between an answer and the next command.
        while not select.select([sys.stdin], [], [], 0)[0] and self.work():
            pass
        return sys.stdin.readline()

    def serve(self) -> None:
        for line in iter(self._next, ""):
            command, *words = line.rstrip("\n").split("\t")
            try:
                if command == "produce":
                    topic, count, *options = words
                    records = [_fields(sys.stdin.readline()) for _ in range(int(count))]
                    answer = self.produce(topic, records, pairs(options))
                else:
                    answer = getattr(self, command)(*words)
                for one in answer or ():
                    sys.stdout.write(f"= {one}\n")
                sys.stdout.write("ok\n")
            except Exception as failure:
                text = " ".join(f"{type(failure).__name__}: {failure}".split())
                sys.stdout.write(f"error\t{code_of(failure)}\t{text}\n")
            sys.stdout.flush()


def code_of(failure: Exception) -> int:
    """Kafka's number, which these libraries keep in `errno`; that of a system error is another."""
    code = getattr(failure, "errno", None)
    return code if isinstance(code, int) and not isinstance(failure, OSError) else -1


def pairs(words) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def encode(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def encode_text(text: str | None) -> str:
    return encode(None if text is None else text.encode())


def decode(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


def _fields(line: str) -> dict:
    """A record as the keyword arguments that all these libraries' send() has."""
    partition, _, timestamp, key, value, headers = line.rstrip("\n").split("\t")
    pairs_ = (pair.split(":") for pair in headers.split(",") if pair)
    return {
        "key": decode(key),
        "value": decode(value),
        "headers": [(name, decode(content)) for name, content in pairs_],
        "partition": None if partition == "-1" else int(partition),
        "timestamp_ms": None if timestamp == "-" else int(timestamp),
    }


def record_line(record) -> str:
    """Of a ConsumerRecord, which looks alike in all these libraries."""
    headers = ",".join(f"{name}:{encode(value)}" for name, value in record.headers)
    timestamp = "-" if record.timestamp is None else record.timestamp
    return (
        f"{record.partition}\t{record.offset}\t{timestamp}"
        f"\t{encode(record.key)}\t{encode(record.value)}\t{headers}"
    )


class Seen:
    """What has happened to a member of a group since it was last asked."""

    def __init__(self):
        self.lines: list[str] = []

    def read(self, record) -> None:
        self.lines.append(f"read\t{record.partition}\t{record.offset}\t{encode(record.value)}")

    def got(self, partitions) -> None:
        self.lines.append(f"got\t{numbers(partitions)}")

    def gave(self, partitions) -> None:
        self.lines.append(f"gave\t{numbers(partitions)}")

    def take(self, owned) -> list[str]:
        lines, self.lines = self.lines, []
        return [*lines, f"owns\t{numbers(owned)}"]


def numbers(partitions) -> str:
    return ",".join(str(number) for number in sorted(one.partition for one in partitions))


def setting_line(name, value, source, read_only, synonyms=()) -> str:
    others = ",".join(
        f"{other}:{encode_text(content)}:{where}" for other, content, where in synonyms
    )
    return f"{name}\t{encode_text(value)}\t{source}\t{str(bool(read_only)).lower()}\t{others}"
