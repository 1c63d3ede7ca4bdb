#!/usr/bin/env python3
"""Turns schema/*.kafka (see schema/README.md) into C++: structs, readers, writers, JSON printers.

usage: generate.py SCHEMA_DIR OUTPUT_DIR CODEC_PARTS JSON_PARTS

Writes OUTPUT_DIR/millrace/kafka/NAME.h for each schema, api_key.h and json.h beside them, and the
sources OUTPUT_DIR/{api_table,codec_N,json_N}.cc. Messages share sources because parsing the
standard library once per message would take longer than compiling all of them. A file whose content
stays the same is not touched.
"""

import re
import sys
from dataclasses import dataclass, field as member
from pathlib import Path

VERSION_MAX = 0x7FFF

# type: (C++, least bytes on the wire: old form, flexible form)
PRIMITIVES = {
    "bool": ("bool", 1, 1),
    "int8": ("std::int8_t", 1, 1),
    "int16": ("std::int16_t", 2, 2),
    "int32": ("std::int32_t", 4, 4),
    "int64": ("std::int64_t", 8, 8),
    "uint16": ("std::uint16_t", 2, 2),
    "uint32": ("std::uint32_t", 4, 4),
    "float64": ("double", 8, 8),
    "uuid": ("Uuid", 16, 16),
    "string": ("std::string_view", 2, 1),
    "bytes": ("Buffer", 4, 1),
    "records": ("Buffer", 4, 1),
}
NUMBERS = {"int8", "int16", "int32", "int64", "uint16", "uint32", "float64"}
KINDS = {"request", "response", "key", "value", "record", "header", "data"}
KEYWORDS = {"class", "default", "delete", "explicit", "namespace", "new", "operator", "private",
            "public", "register", "template", "union", "unknown_tags"}
MESSAGE_MEMBERS = {"frame", "api_key", "record_type", "message_name", "message_versions"}


class SchemaError(Exception):
    pass


@dataclass
class Field:
    name: str
    type: str  # without the []
    is_array: bool
    versions: frozenset | None = None  # None: wherever the parent is present
    nullable: frozenset = frozenset()
    tag: int | None = None
    inflexible: bool = False
    default: str | None = None
    ignorable: bool = False
    struct: "Struct | None" = None

    @property
    def is_nullable(self):
        return bool(self.nullable)

    @property
    def null_default(self):
        return self.default == "null"


@dataclass
class Struct:
    name: str  # in the schema: "Topic"
    cpp_name: str  # "FetchRequestTopic", which FetchRequest::Topic is an alias of
    fields: list = member(default_factory=list)
    present: frozenset = frozenset()  # versions in which some use of it is
    has_tags: bool = False  # in some version


@dataclass
class Message:
    kind: str
    name: str
    number: int | None
    versions: frozenset
    flexible: int  # first flexible version
    served: frozenset
    retired: bool
    private: bool
    body: Struct = None
    structs: dict = member(default_factory=dict)  # inner ones first

    @property
    def struct_name(self):
        return self.name + {"request": "Request", "response": "Response"}.get(self.kind, "")


# ---- reading schemas ----


def parse_versions(text, newest):
    """'0-12', '3+', '7' or '0,8' as a set."""
    versions = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)|(\+))?", part)
        if not match:
            raise SchemaError(f"not a version range: {text}")
        first = int(match[1])
        last = newest if match[3] else int(match[2] or first)
        versions |= set(range(first, last + 1))
    return frozenset(versions)


def is_versions(word):
    return word is not None and re.fullmatch(r"\d[\d,+-]*", word) is not None


class Words:
    def __init__(self, line):
        self.words = line.split()

    def peek(self):
        return self.words[0] if self.words else None

    def take(self):
        if not self.words:
            raise SchemaError("the line ends too early")
        return self.words.pop(0)

    def accept(self, word):
        if self.peek() != word:
            return False
        self.words.pop(0)
        return True


def parse_message(words):
    kind = words.take()
    if kind not in KINDS:
        raise SchemaError(f"unknown kind {kind}")
    name = words.take()
    number = int(words.take()) if is_versions(words.peek()) else None
    if not words.accept("versions"):
        raise SchemaError("expected 'versions'")
    versions = parse_versions(words.take(), 0)
    flexible = int(words.take()) if words.accept("flexible") else VERSION_MAX
    served = parse_versions(words.take(), 0) if words.accept("served") else versions
    retired = words.accept("retired")
    private = words.accept("private")
    message = Message(kind, name, number, versions, flexible, served, retired, private)
    message.body = Struct(name, message.struct_name, present=versions)
    return message


def parse_field(words, newest):
    name = words.take()
    type_name = words.take()
    field = Field(name, type_name.removeprefix("[]"), type_name.startswith("[]"))
    if is_versions(words.peek()):
        field.versions = parse_versions(words.take(), newest)
    if words.accept("nullable"):
        field.nullable = parse_versions(words.take() if is_versions(words.peek()) else "0+", newest)
    if words.accept("tag"):
        field.tag = int(words.take())
    field.inflexible = words.accept("inflexible")
    if words.accept("="):
        field.default = words.take()
    field.ignorable = words.accept("ignorable")
    if field.null_default and not field.is_nullable:
        raise SchemaError(f"{name} has a null default and is never nullable")
    if field.is_nullable and not field.null_default and field.type == "records":
        raise SchemaError(f"{name} must say '= null', as nullable records do")
    return field


def parse_file(path):
    messages = []
    open_fields = []  # the field whose struct each level of indentation belongs to
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        try:
            depth, odd = divmod(len(line) - len(line.lstrip()), 2)
            words = Words(line)
            if depth == 0:
                message = parse_message(words)
                messages.append(message)
                open_fields = [None]
            else:
                if odd or depth > len(open_fields):
                    raise SchemaError("bad indentation")
                newest = max(message.versions)
                field = parse_field(words, newest)
                del open_fields[depth:]
                parent = open_fields[-1]
                owner = message.body if parent is None else parent.struct
                if field.name in KEYWORDS or (parent is None and field.name in MESSAGE_MEMBERS):
                    raise SchemaError(f"{field.name} is reserved")
                if owner is None or (parent and parent.struct.name not in message.structs):
                    raise SchemaError(f"{parent.name} is not a struct")
                owner.fields.append(field)
                if field.type not in PRIMITIVES:
                    new = Struct(field.type, message.struct_name + field.type)
                    field.struct = message.structs.setdefault(field.type, new)
                open_fields.append(field)
            if words.peek() is not None:
                raise SchemaError(f"unexpected '{words.peek()}'")
        except (SchemaError, ValueError) as error:
            raise SchemaError(f"{path.name}:{number}: {error}") from error
    for message in messages:
        resolve(message)
    return messages


def resolve(message):
    """Finds where each struct is present; puts inner structs first."""

    order = {}

    def visit(struct):
        for field in struct.fields:
            if not field.struct:
                continue
            if not field.struct.fields:
                raise SchemaError(f"{message.struct_name}: struct {field.type} has no fields")
            field.struct.present |= present_in(field, struct)
            visit(field.struct)
            order.setdefault(field.type, field.struct)

    visit(message.body)
    message.structs = order
    for struct in [message.body, *order.values()]:
        struct.has_tags = any(v >= message.flexible for v in struct.present)


def present_in(field, struct):
    return struct.present if field.versions is None else field.versions & struct.present


# ---- C++ expressions ----


def condition(versions, among):
    """An expression on `version` that tells `versions` from the rest of `among`; None for all."""
    inside = versions & among
    outside = among - versions
    if not outside:
        return None
    if not inside:
        return "false"
    parts = []
    if any(v < min(inside) for v in outside):
        parts.append(f"version >= {min(inside)}")
    if any(v > max(inside) for v in outside):
        parts.append(f"version <= {max(inside)}")
    return " && ".join(parts)


def flexible_condition(message, among):
    return condition(frozenset(v for v in among if v >= message.flexible), among)


def cpp_type(message, field):
    if field.struct:
        base = field.struct.cpp_name
    elif field.type == "records":
        base = "Payload" if message.kind == "response" else "Buffer"
    else:
        base = PRIMITIVES[field.type][0]
    if field.is_array:
        base = f"std::vector<{base}>"
    return f"std::optional<{base}>" if field.is_nullable else base


def cpp_number(field):
    text = field.default or "0"
    if field.type == "int32" and int(text, 0) == -(2**31):
        return "INT32_MIN"
    if field.type == "int64" and int(text, 0) == 2**63 - 1:
        return "INT64_MAX"
    return text


def cpp_initializer(field):
    if field.is_nullable:
        if field.null_default:
            return ""
        return ' = ""' if field.type == "string" and not field.is_array else "{std::in_place}"
    if field.is_array or field.struct:
        return ""
    if field.type in NUMBERS:
        return f" = {cpp_number(field)}"
    if field.type == "bool":
        return f" = {field.default or 'false'}"
    return ""


def differs_from_default(field, of="in."):
    value = of + field.name
    if field.is_nullable:
        if field.null_default:
            return f"{value}.has_value()"
        if field.struct and not field.is_array:
            return f"!{value} || {struct_differs(field.struct, value + '->')}"
        return f"!{value} || !{value}->empty()"
    if field.is_array or field.type in ("string", "bytes", "records"):
        return f"!{value}.empty()"
    if field.struct:
        return struct_differs(field.struct, value + ".")
    if field.type == "uuid":
        return f"!{value}.is_none()"
    if field.type == "bool":
        return f"!{value}" if field.default == "true" else value
    return f"{value} != {cpp_number(field)}"


def struct_differs(struct, of):
    parts = [differs_from_default(field, of) for field in struct.fields]
    if struct.has_tags:
        parts.append(f"!{of}unknown_tags.empty()")
    return " || ".join(parts)


def conjunction(*conditions):
    parts = [f"({c})" if "||" in c else c for c in conditions if c]
    return " && ".join(parts) if len(parts) > 1 else next((c for c in conditions if c), None)


def bytes_min(message, field_or_struct, version):
    """The least that one value takes on the wire in `version`."""
    column = 2 if version >= message.flexible else 1
    if isinstance(field_or_struct, Struct):
        struct = field_or_struct
        return (column - 1) + sum(
            bytes_min(message, field, version)
            for field in struct.fields
            if version in present_in(field, struct) and field.tag is None
        )
    field = field_or_struct
    if field.is_array:
        return 1 if column == 2 else 4
    if field.struct:
        return 1 if version in field.nullable else bytes_min(message, field.struct, version)
    return PRIMITIVES[field.type][column]


def element_bytes_min(message, struct):
    return max(1, min(bytes_min(message, struct, v) for v in struct.present))


# ---- C++ functions ----


class Code:
    """Lines with indentation."""

    def __init__(self):
        self.lines = []
        self.depth = 0

    def add(self, line=""):
        self.lines.append("  " * self.depth + line if line else "")

    def open(self, line):
        self.add(line + " {")
        self.depth += 1

    def turn(self, line):
        self.depth -= 1
        self.add("} " + line + " {")
        self.depth += 1

    def close(self, line="}"):
        self.depth -= 1
        self.add(line)

    def text(self):
        return "\n".join(self.lines) + "\n"


def function(signature, body):
    """A definition; a parameter that the body does not use stays nameless."""
    for parameter in ("version", "in"):
        if not any(re.search(rf'(?<![."\w]){parameter}\b', line) for line in body.lines):
            signature = re.sub(rf" {parameter}(?=[,)])", "", signature)
    return [signature + " {", *("  " + line if line else "" for line in body.lines), "}", ""]


def guarded(code, cond, emit):
    if cond is None:
        emit()
        return
    code.open(f"if ({cond})")
    emit()
    code.close()


def nullable_argument(field, present):
    cond = condition(field.nullable, present)
    return "" if cond is None else f", {cond}"


def emit_read(code, message, field, present, tagged=False):
    name = f'"{field.name}"'
    value = f"out.{field.name}"
    if field.struct and field.is_array:
        least = element_bytes_min(message, field.struct)
        null = nullable_argument(field, present) if field.is_nullable else ""
        elements = f"in.elements({value}, {least}, {name}{null})"
        code.add(f"for (auto& e : {elements}) read(in, version, e);")
    elif field.struct and field.is_nullable:
        mark = ", true" if tagged else ""
        code.add(f"if (in.present({name}{mark})) read(in, version, {value}.emplace());")
        if not field.null_default:
            code.add(f"else {value}.reset();")
    elif field.struct:
        code.add(f"read(in, version, {value});")
    else:
        null = nullable_argument(field, present) if field.is_nullable else ""
        code.add(f"in.read({value}, {name}{null});")


def emit_write(code, message, field, present, tagged=False):
    name = f'"{field.name}"'
    value = f"in.{field.name}"
    null = nullable_argument(field, present) if field.is_nullable else ""
    if field.struct and field.is_array and field.is_nullable:
        code.open(f"if (out.begin_array({value}, {name}{null}))")
        code.add(f"for (const auto& e : *{value}) write(out, version, e);")
        code.close()
    elif field.struct and field.is_array:
        code.add(f"out.begin_array({value}, {name});")
        code.add(f"for (const auto& e : {value}) write(out, version, e);")
    elif field.struct and field.is_nullable:
        mark = ", true" if tagged else ""
        code.add(f"out.write_present({value}.has_value(){mark});")
        code.add(f"if ({value}) write(out, version, *{value});")
    elif field.struct:
        code.add(f"write(out, version, {value});")
    elif field.is_array or field.type in ("string", "bytes", "records"):
        code.add(f"out.write({value}, {name}{null});")
    else:
        code.add(f"out.write({value});")


def emit_json(code, field):
    name = f'"{camel_case(field.name)}"'
    value = f"in.{field.name}"
    if not field.struct:
        code.add(f"out.field({name}, {value});")
        return
    if field.is_nullable:
        code.open(f"if (!{value})")
        code.add(f"out.null_field({name});")
        code.turn("else")
        value = f"*{value}"
    if field.is_array:
        code.add(f"out.begin_array({name});")
        code.add(f"for (const auto& e : {value}) print(out, version, e);")
        code.add("out.end_array();")
    else:
        code.add(f"out.name({name});")
        code.add(f"print(out, version, {value});")
    if field.is_nullable:
        code.close()


def camel_case(name):
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def split_tagged(struct):
    plain = [f for f in struct.fields if f.tag is None]
    tagged = sorted((f for f in struct.fields if f.tag is not None), key=lambda f: f.tag)
    return plain, tagged


def set_flexible(code, variable, message, on=True):
    cond = flexible_condition(message, message.versions)
    code.add(f"{variable}.set_flexible({(cond or 'true') if on else 'false'});")


def read_body(message, struct):
    code = Code()
    if struct is message.body:
        set_flexible(code, "in", message)
        code.add("out.frame = in.frame();")
    plain, tagged = split_tagged(struct)
    for field in plain:
        present = present_in(field, struct)

        def emit(field=field, present=present):
            if field.inflexible:
                set_flexible(code, "in", message, False)
            emit_read(code, message, field, present)
            if field.inflexible:
                set_flexible(code, "in", message)

        guarded(code, condition(present, struct.present), emit)
    flexible = flexible_condition(message, struct.present)
    if flexible == "false":
        return code

    def emit_tags():
        if not tagged:
            code.add("in.keep_tags(out.unknown_tags);")
            return
        code.open("for (TagReader tags(in); tags.next();)")
        for at, field in enumerate(tagged):
            flexible_versions = frozenset(v for v in struct.present if v >= message.flexible)
            cond = condition(present_in(field, struct), flexible_versions)
            test = f"if ({conjunction(f'tags.tag() == {field.tag}', cond)})"
            code.open(test) if at == 0 else code.turn("else " + test)
            emit_read(code, message, field, present_in(field, struct), tagged=True)
        code.turn("else")
        code.add("tags.keep(out.unknown_tags);")
        code.close()
        code.close()

    guarded(code, flexible, emit_tags)
    return code


def write_body(message, struct):
    code = Code()
    if struct is message.body:
        set_flexible(code, "out", message)
    plain, tagged = split_tagged(struct)

    def refuse_elsewhere(field, cond):
        """A value that matters must not vanish in a version without the field."""
        if not field.ignorable and cond is not None:
            return f"if ({differs_from_default(field)})", f'out.fail_unsupported("{field.name}");'
        return None

    for field in plain:
        present = present_in(field, struct)
        cond = condition(present, struct.present)

        def emit(field=field, present=present):
            if field.inflexible:
                set_flexible(code, "out", message, False)
            emit_write(code, message, field, present)
            if field.inflexible:
                set_flexible(code, "out", message)

        if cond is None:
            emit()
            continue
        code.open(f"if ({cond})")
        emit()
        refusal = refuse_elsewhere(field, cond)
        if refusal:
            code.turn("else " + refusal[0])
            code.add(refusal[1])
        code.close()
    for field in tagged:
        cond = condition(present_in(field, struct), struct.present)
        refusal = refuse_elsewhere(field, cond)
        if refusal:
            absent = f"!({cond})" if "&&" in cond else invert(cond)
            code.open(f"if ({conjunction(absent, differs_from_default(field))})")
            code.add(refusal[1])
            code.close()
    flexible = flexible_condition(message, struct.present)
    if flexible == "false":
        return code

    def emit_tags():
        if not tagged:
            code.add("out.write_tags(in.unknown_tags);")
            return
        code.add("TagWriter tags(out, in.unknown_tags);")
        for field in tagged:
            flexible_versions = frozenset(v for v in struct.present if v >= message.flexible)
            cond = condition(present_in(field, struct), flexible_versions)
            code.open(f"if ({conjunction(cond, differs_from_default(field))})")
            code.add(f"tags.begin({field.tag});")
            emit_write(code, message, field, present_in(field, struct), tagged=True)
            code.add("tags.end();")
            code.close()
        code.add("tags.finish();")

    guarded(code, flexible, emit_tags)
    return code


def invert(cond):
    return cond.replace(">=", "<") if ">=" in cond else cond.replace("<=", ">")


def print_body(message, struct):
    code = Code()
    code.add("out.begin_object();")
    for field in struct.fields:
        cond = condition(present_in(field, struct), struct.present)
        if field.tag is not None:
            cond = conjunction(cond, differs_from_default(field))
        guarded(code, cond, lambda field=field: emit_json(code, field))
    code.add("out.end_object();")
    return code


# ---- files ----

DO_NOT_EDIT = "// Generated by sdk/kafka/generate.py from {}; change that instead.\n"


def version_comment(field):
    if field.versions is None:
        return ""
    low, high = min(field.versions), max(field.versions)
    return f"  // version {low}" if low == high else f"  // versions {low}-{high}"


def struct_lines(message, struct):
    """The inside of a struct. Inner structs stand before their message, not in it: a default member
    initializer is unknown to std::optional until the outermost class is complete."""
    lines = []
    for field in struct.fields:
        declaration = f"{cpp_type(message, field)} {field.name}{cpp_initializer(field)};"
        lines.append(f"  {declaration}{version_comment(field)}")
    if struct.has_tags:
        lines.append("  UnknownTags unknown_tags;")
    return lines


def message_lines(message):
    name = message.struct_name
    lines = []
    for struct in message.structs.values():
        lines += [f"struct {struct.cpp_name} {{", *struct_lines(message, struct), "};", ""]
    lines.append(f"struct {name} {{")
    lines += [f"  using {struct.name} = {struct.cpp_name};" for struct in message.structs.values()]
    if message.kind in ("request", "response") and not message.retired:
        lines.append(f"  static constexpr ApiKey api_key = ApiKey::{snake_case(message.name)};")
    elif message.number is not None and not message.retired:
        lines.append(f"  static constexpr std::int16_t record_type = {message.number};")
    if message.kind == "request":
        lines.append(f"  using Response = struct {message.name}Response;")
    low, high = min(message.versions), max(message.versions)
    lines.append(f'  static constexpr std::string_view message_name = "{name}";')
    lines.append(f"  static constexpr VersionRange message_versions{{{low}, {high}}};")
    lines.append("")
    lines.append("  Buffer frame;  // what the views point into; set by read()")
    return [*lines, *struct_lines(message, message.body), "};"]


def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


HEADER_COMMENT = """\
// Strings are views. read() points them, bytes and records into the message's own `frame`; what
// write() is given must stay alive until it returns. `out` of read() must be newly made.
"""


def header(schema, messages):
    lines = [DO_NOT_EDIT.format(f"schema/{schema}.kafka") + HEADER_COMMENT + "#pragma once", ""]
    lines += ["#include <millrace/kafka/api_key.h>", "#include <millrace/kafka/message.h>", ""]
    lines += ["namespace millrace::kafka {", ""]
    for message in messages:
        lines += message_lines(message)
        name = message.struct_name
        lines.append(f"void read(WireReader& in, std::int16_t version, {name}& out);")
        lines.append(f"void write(WireWriter& out, std::int16_t version, const {name}& in);")
        lines.append("")
    lines.append("}  // namespace millrace::kafka")
    return "\n".join(lines) + "\n"


def source(schemas, hand_written, functions_of):
    """One .cc with the functions of several schemas; those of inner structs are its own."""
    lines = [DO_NOT_EDIT.format("schema/")]
    lines += [f"#include <millrace/kafka/{name}.h>" for name in sorted([*hand_written, *schemas])]
    lines += ["", "namespace millrace::kafka {"]
    for messages in schemas.values():
        for message in messages:
            if message.structs:
                lines += ["namespace {", ""]
                for struct in message.structs.values():
                    lines += functions_of(message, struct)
                lines += ["}  // namespace"]
            lines.append("")
            lines += functions_of(message, message.body)
    lines.append("}  // namespace millrace::kafka")
    return "\n".join(lines) + "\n"


def codec_functions(message, struct):
    name = struct.cpp_name
    return function(
        f"void read(WireReader& in, std::int16_t version, {name}& out)", read_body(message, struct)
    ) + function(
        f"void write(WireWriter& out, std::int16_t version, const {name}& in)",
        write_body(message, struct),
    )


def json_functions(message, struct):
    name = struct.cpp_name
    is_body = struct is message.body
    lines = ["namespace {", ""] if is_body else []
    lines += function(
        f"void print(JsonWriter& out, std::int16_t version, const {name}& in)",
        print_body(message, struct),
    )
    if is_body:
        lines += ["}  // namespace", ""]
        lines += [
            f"std::string to_json(const {name}& message, std::int16_t version) {{",
            "  JsonWriter out;",
            "  print(out, version, message);",
            "  return std::move(out).finish();",
            "}",
            f"extern constinit const MessageInfo info_of_{name} =",
            f"    make_message_info<{name}>({message_facts(message)});",
            "",
        ]
    return lines


def message_facts(message):
    number = -1 if message.number is None else message.number
    return f"MessageKind::{message.kind}, {number}, {message.flexible}"


def api_key_header(requests):
    lines = [DO_NOT_EDIT.format("schema/") + "#pragma once", "", "#include <cstdint>", ""]
    lines += ["namespace millrace::kafka {", "", "enum class ApiKey : std::int16_t {"]
    lines += [f"  {snake_case(m.name)} = {m.number}," for m in requests]
    lines += ["};", "", "}  // namespace millrace::kafka"]
    return "\n".join(lines) + "\n"


def api_table(requests):
    lines = [DO_NOT_EDIT.format("schema/"), "#include <millrace/kafka/api.h>", ""]
    lines += ["namespace millrace::kafka {", "namespace {", "", "constexpr ApiInfo table[] = {"]
    for m in requests:
        known = f"{{{min(m.versions)}, {max(m.versions)}}}"
        served = f"{{{min(m.served)}, {max(m.served)}}}"
        private = str(m.private).lower()
        row = f'ApiKey::{snake_case(m.name)}, "{m.name}", {known}, {served}, {m.flexible}, {private}'
        lines.append(f"    {{{row}}},")
    lines += ["};", "", "}  // namespace", ""]
    lines += ["std::span<const ApiInfo> api_table() noexcept { return table; }", ""]
    lines += ["}  // namespace millrace::kafka"]
    return "\n".join(lines) + "\n"


JSON_COMMENT = """\
// Messages as text, in Kafka's own JSON form. For tools and tests: link millrace::kafka_json.
"""


def json_header(messages):
    lines = [DO_NOT_EDIT.format("schema/") + JSON_COMMENT + "#pragma once"]
    lines += ["", "#include <cstdint>", "#include <string>", "", "namespace millrace::kafka {", ""]
    for message in messages:
        lines.append(f"struct {message.struct_name};")
    lines.append("")
    for message in messages:
        name = message.struct_name
        lines.append(f"std::string to_json(const {name}& message, std::int16_t version);")
    lines += ["", "}  // namespace millrace::kafka"]
    return "\n".join(lines) + "\n"


def message_table(messages):
    names = sorted(m.struct_name for m in messages)
    lines = [DO_NOT_EDIT.format("schema/"), "#include <millrace/kafka/message_info.h>", ""]
    lines += ["namespace millrace::kafka {", ""]
    lines += [f"extern const MessageInfo info_of_{name};" for name in names]
    lines += ["", "namespace {", "", "const MessageInfo* const table[] = {"]
    lines += [f"    &info_of_{name}," for name in names]
    lines += ["};", "", "}  // namespace", ""]
    lines += ["std::span<const MessageInfo* const> message_table() noexcept { return table; }", ""]
    lines += ["}  // namespace millrace::kafka"]
    return "\n".join(lines) + "\n"


def partition(schemas, parts):
    """Spreads schemas over sources of about equal length."""

    def weight(messages):
        structs = [s for m in messages for s in (m.body, *m.structs.values())]
        return sum(len(struct.fields) + 3 for struct in structs)

    bins = [{} for _ in range(parts)]
    weights = [0] * parts
    for name in sorted(schemas, key=lambda n: (-weight(schemas[n]), n)):
        lightest = weights.index(min(weights))
        bins[lightest][name] = schemas[name]
        weights[lightest] += weight(schemas[name])
    return bins


def write_file(path, content):
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def main(schema_dir, output_dir, codec_parts, json_parts):
    output = Path(output_dir)
    headers = output / "millrace" / "kafka"
    headers.mkdir(parents=True, exist_ok=True)
    schemas = {path.stem: parse_file(path) for path in sorted(Path(schema_dir).glob("*.kafka"))}
    messages = [message for group in schemas.values() for message in group]
    requests = [m for m in messages if m.kind == "request" and not m.retired]
    requests.sort(key=lambda m: m.number)

    for name, group in schemas.items():
        write_file(headers / f"{name}.h", header(name, group))
    write_file(headers / "api_key.h", api_key_header(requests))
    write_file(headers / "json.h", json_header(messages))
    write_file(output / "api_table.cc", api_table(requests))
    write_file(output / "message_table.cc", message_table(messages))
    for at, part in enumerate(partition(schemas, int(codec_parts))):
        text = source(part, ["wire_reader", "wire_writer"], codec_functions)
        write_file(output / f"codec_{at}.cc", text)
    for at, part in enumerate(partition(schemas, int(json_parts))):
        text = source(part, ["json", "json_writer", "message_info"], json_functions)
        write_file(output / f"json_{at}.cc", text)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except SchemaError as error:
        sys.exit(f"generate.py: {error}")
