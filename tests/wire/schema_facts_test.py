#!/usr/bin/env python3
"""Every message of tests/golden/protocol has a schema text in sdk/kafka/schema, and the text says
of each field what Kafka's own schema says: type, versions, nullability, tag, default, ignorable.

usage: schema_facts_test.py REPOSITORY
"""

import sys
from pathlib import Path

KINDS = {
    "request": "request",
    "response": "response",
    "coordinator-key": "key",
    "coordinator-value": "value",
    "metadata": "record",
    "header": "header",
    "data": "data",
}


def read_facts(path):
    """[(message line, [field lines])], each line a list of columns."""
    messages = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if columns[0] == "M":
            messages.append((columns, []))
        else:
            messages[-1][1].append(columns)
    return messages


class Checker:
    def __init__(self, generate, schema_dir):
        self.generate = generate
        self.messages = {}
        for path in sorted(schema_dir.glob("*.kafka")):
            for message in generate.parse_file(path):
                self.messages[message.struct_name] = message
        self.differences = []
        self.fields = 0

    def differ(self, where, what, expected, found):
        if expected != found:
            self.differences.append(f"{where}: {what} is {found}, expected {expected}")

    def versions(self, text, message):
        if text in ("-", "none"):
            return frozenset()
        return self.generate.parse_versions(text, max(message.versions))

    def check_message(self, row, field_rows):
        _, number, name, kind, valid, _, _, flexible, *_ = row
        message = self.messages.get(name)
        if message is None:
            self.differences.append(f"{name}: no schema text")
            return
        self.differ(name, "kind", KINDS[kind], message.kind)
        self.differ(name, "number", None if number == "-" else int(number), message.number)
        self.differ(name, "versions", self.generate.parse_versions(valid, 0), message.versions)
        first = self.versions(flexible, message) & message.versions
        ours = frozenset(v for v in message.versions if v >= message.flexible)
        self.differ(name, "flexible versions", first, ours)
        rest = self.check_fields(name, message, message.body, message.versions, field_rows, 0)
        if rest:
            self.differences.append(f"{name}: no field {rest[0][2].strip()}")

    def check_fields(self, where, message, struct, among, rows, depth):
        """The fields that a struct has in the versions `among` against the rows of that depth; what
        is left of the rows."""
        for field in struct.fields:
            present = among if field.versions is None else field.versions & among
            if not present:
                continue
            if not rows or int(rows[0][1]) != depth:
                self.differences.append(f"{where}: field {field.name} is not Kafka's")
                return rows
            row, rows = rows[0], rows[1:]
            self.check_field(f"{where}.{field.name}", message, field, present, row)
            inner, rows = split_deeper(rows, depth)
            # A struct that is used twice is described by Kafka at one of the places, or at both.
            if inner and field.struct:
                place = f"{where}.{field.name}"
                left = self.check_fields(place, message, field.struct, present, inner, depth + 1)
                if left:
                    self.differences.append(f"{place}: no field {left[0][2].strip()}")
        return rows

    def check_field(self, where, message, field, present, row):
        _, _, name, kind, versions, nullable, _, tag, default, ignorable, *_ = row
        self.fields += 1
        self.differ(where, "name", self.generate.snake_case(name.strip()), field.name)
        inflexible = "(flexible:none)" in kind
        kind = kind.replace("(flexible:none)", "").strip()
        self.differ(where, "array", kind.startswith("[]"), field.is_array)
        if field.type in self.generate.PRIMITIVES or not kind.removeprefix("[]")[0].isupper():
            self.differ(where, "type", kind.removeprefix("[]"), field.type)
        self.differ(where, "flexibility", inflexible, field.inflexible)
        expected = self.versions(versions, message) & message.versions
        self.differ(where, "versions", sorted(expected), sorted(present))
        self.differ(
            where, "nullable", sorted(self.versions(nullable, message) & present),
            sorted(field.nullable & present),
        )
        self.differ(where, "tag", None if tag == "-" else int(tag), field.tag)
        self.check_default(where, field, default)
        if present != message.versions:
            self.differ(where, "ignorable", ignorable == "yes", field.ignorable)

    def check_default(self, where, field, default):
        absent = {None, "0", "false", "False", "-", '""'}
        if default in absent and field.default in absent:
            return
        # Which of the two "no records" are cannot be told on the wire: every version has the field.
        if field.type == "records" and field.is_nullable:
            return
        if field.type in self.generate.NUMBERS and default not in absent | {"null"}:
            self.differ(where, "default", int(default, 0), int(field.default or "0", 0))
        else:
            self.differ(where, "default", default, field.default)


def split_deeper(rows, depth):
    at = 0
    while at < len(rows) and int(rows[at][1]) > depth:
        at += 1
    return rows[:at], rows[at:]


def main(root):
    sys.path.insert(0, str(root / "sdk" / "kafka"))
    sys.dont_write_bytecode = True
    import generate

    checker = Checker(generate, root / "sdk" / "kafka" / "schema")
    for name in ("messages.tsv", "internal-schemas.tsv"):
        for row, fields in read_facts(root / "tests" / "golden" / "protocol" / name):
            checker.check_message(row, fields)
    print("\n".join(checker.differences))
    print(f"{len(checker.messages)} messages, {checker.fields} fields, "
          f"{len(checker.differences)} differences")
    return 1 if checker.differences else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
