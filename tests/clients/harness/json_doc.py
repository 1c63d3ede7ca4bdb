"""The shapes that packaging/doc/json.md promises, and whether what the tool prints has them."""

import json
import re

from harness.paths import SOURCE
from harness.tool import Tool

DOCUMENT = SOURCE / "packaging" / "doc" / "json.md"


def _is_bytes(value: object) -> bool:
    if isinstance(value, dict):
        return set(value) == {"hex"} and re.fullmatch("([0-9a-f]{2})*", value["hex"]) is not None
    return isinstance(value, str)


TYPES = {
    "text": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "bytes": _is_bytes,
    "null": lambda value: value is None,
}


def shapes() -> dict[str, object]:
    """By verb, "topic list": a paragraph that begins with the verb, and the block behind it."""
    paragraph = r"^`([a-z]+(?: [a-z-]+)*)`[^\n]*(?:\n[^\n]+)*\n\n"
    found = re.findall(paragraph + r"```json\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    return {verb: json.loads(block) for verb, block in found}


def documented(tool: Tool, verb: str, *words: object) -> list[dict]:
    """What the tool prints, which has the shape that is promised."""
    printed = tool.json_lines(*verb.split(), *words)
    for document in printed:
        assert differences(shapes()[verb], document) == []
    return printed


def differences(shape: object, value: object, where: str = "$") -> list[str]:
    """What of `value` is not as `shape` says."""
    if isinstance(shape, str):
        if any(TYPES[one](value) for one in shape.split(" or ")):
            return []
        return [f"{where}: {value!r} is not {shape}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no array"]
        return [
            difference
            for at, element in enumerate(value)
            for difference in differences(shape[0], element, f"{where}[{at}]")
        ]
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    members = {name.rstrip("?"): of for name, of in shape.items()}
    optional = {name.rstrip("?") for name in shape if name.endswith("?")}
    found = [f"{where}.{name} is not documented" for name in sorted(set(value) - set(members))]
    found += [f"{where}.{name} is missing" for name in sorted(set(members) - optional - set(value))]
    for name in sorted(set(members) & set(value)):
        if value[name] is None and name in optional:
            continue
        found += differences(members[name], value[name], f"{where}.{name}")
    return found
