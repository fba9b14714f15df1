"""Protobuf files (`.proto`): the fields of a message as columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.trust.schemas import DeclaredColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<token>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
    r"""|[A-Za-z_.][\w.]*|[-+]?\d[\w.+-]*|[{}()\[\]<>=;,:/-])""",
    re.DOTALL,
)
_SCALARS = {
    "double": "double", "float": "real", "int32": "int", "sint32": "int", "sfixed32": "int",
    "uint32": "bigint", "fixed32": "bigint", "int64": "bigint", "sint64": "bigint",
    "sfixed64": "bigint", "uint64": "decimal(20,0)", "fixed64": "decimal(20,0)",
    "bool": "boolean", "string": "text", "bytes": "binary",
}  # fmt: skip
_WELL_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "interval",
    "google.protobuf.Struct": "json",
    "google.protobuf.StringValue": "text",
    "google.protobuf.BytesValue": "binary",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.Int32Value": "int",
    "google.protobuf.UInt32Value": "bigint",
    "google.protobuf.Int64Value": "bigint",
    "google.protobuf.UInt64Value": "decimal(20,0)",
    "google.protobuf.FloatValue": "real",
    "google.protobuf.DoubleValue": "double",
    "google.type.Date": "date",
}
_LABELS = frozenset({"optional", "required", "repeated"})


class ProtoField(NamedTuple):
    """A field of a message; `type` is as the file writes it."""

    name: str
    type: str
    label: str


class ProtoFile:
    """The messages and enums of a file, by their full names inside it."""

    def __init__(self) -> None:
        self.messages: dict[str, list[ProtoField]] = {}
        self.enums: set[str] = set()


def parse_protobuf(text: str, message: str | None = None) -> Iterator[DeclaredColumn]:
    """Yield the fields of a message. Raises ValueError.

    Without a name, the file must have one message outside of others. Only `required` fields of
    proto2 are required: a reader gets the default of any other field that the data does not have.
    """
    found = _Parser(text).parse()
    yield from _columns(found, _choose(found, message), "", ())


def _choose(found: ProtoFile, wanted: str | None) -> str:
    outer = [name for name in found.messages if "." not in name]
    if wanted is None:
        if len(outer) != 1:
            raise ValueError(f"has {len(outer)} messages; name one: {', '.join(outer) or 'none'}")
        return outer[0]
    if wanted not in found.messages:
        raise ValueError(f"no message {wanted}; it has {', '.join(found.messages) or 'none'}")
    return wanted


def _columns(
    found: ProtoFile, message: str, prefix: str, inside: tuple[str, ...]
) -> Iterator[DeclaredColumn]:
    for field in found.messages[message]:
        path = prefix + field.name
        nested = _find(found, message, field.type, found.messages)
        kind = _type(found, message, field, nested)
        yield DeclaredColumn(
            name=path,
            type=f"array<{kind}>" if field.label == "repeated" else kind,
            required=field.label == "required",
        )
        if nested is not None and nested not in inside:
            yield from _columns(found, nested, f"{path}.", (*inside, nested))


def _type(found: ProtoFile, message: str, field: ProtoField, nested: str | None) -> str:
    if field.type in _SCALARS:
        return _SCALARS[field.type]
    if field.type.startswith("map<"):
        return "map"
    if nested is not None:
        return "struct"
    if _find(found, message, field.type, found.enums) is not None:
        return "text"
    return _WELL_KNOWN.get(field.type.removeprefix("."), "")  # a type of another file


def _find(
    found: ProtoFile, message: str, name: str, known: dict[str, list[ProtoField]] | set[str]
) -> str | None:
    """Return the full name of a type that a message names, from the inside out."""
    scope = message.split(".")
    for depth in range(len(scope), -1, -1):
        full = ".".join([*scope[:depth], name.removeprefix(".")])
        if full in known:
            return full
    return None


class _Parser:
    """Reads the definitions of a file, word by word."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._found = ProtoFile()

    def parse(self) -> ProtoFile:
        while self._at < len(self._tokens):
            self._definition("")
        return self._found

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueError("ends inside a definition")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, word: str) -> None:
        found = self._next()
        if found != word:
            raise ValueError(f"{word!r} expected, not {found!r}")

    def _definition(self, scope: str) -> None:
        match self._next():
            case "message":
                self._message(scope + self._next())
            case "enum":
                self._found.enums.add(scope + self._next())
                self._skip()
            case ";":
                pass
            case _:  # syntax, package, import, option, extend, service
                self._skip()

    def _message(self, name: str) -> None:
        fields = self._found.messages.setdefault(name, [])
        self._expect("{")
        while (word := self._next()) != "}":
            match word:
                case "message" | "enum" if self._is_definition():
                    self._at -= 1
                    self._definition(f"{name}.")
                case "oneof" if self._is_definition():
                    self._next()
                    self._oneof(fields)
                case "option" | "reserved" | "extensions" | "extend":
                    self._skip()
                case ";":
                    pass
                case _:
                    fields.append(self._field(word))

    def _is_definition(self) -> bool:
        """A word such as `message` defines something if a name and a brace follow."""
        return self._tokens[self._at + 1 : self._at + 2] == ["{"]

    def _oneof(self, fields: list[ProtoField]) -> None:
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                fields.append(self._field(word))

    def _field(self, word: str) -> ProtoField:
        label = ""
        if word in _LABELS:
            label, word = word, self._next()
        kind = word
        if word == "map":
            self._expect("<")
            key = self._next()
            self._expect(",")
            kind = f"map<{key},{self._next()}>"
            self._expect(">")
        name = self._next()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{name!r} is not the name of a field")
        if kind == "group":
            raise ValueError(f"{name} is a group, which is not supported")
        self._expect("=")
        self._skip()
        return ProtoField(name, kind, label)

    def _skip(self) -> None:
        """Skip to the end of a statement: a semicolon, or the brace that closes its block."""
        depth = 0
        while True:
            word = self._next()
            depth += (word in "{[(") - (word in "}])")
            if depth == 0 and word in (";", "}"):
                return
            if depth < 0:
                raise ValueError(f"{word!r} without its counterpart")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise ValueError(f"line {line}: {text[at]!r} is not expected")
        if match["token"]:
            yield match["token"]
        at = match.end()
