"""Protobuf files (`.proto`): the fields of a message as columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.trust.schemas import DeclaredColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    "google.protobuf.Value": "json",
    "google.protobuf.ListValue": "json",
    "google.protobuf.Any": "struct",
    "google.type.Date": "date",
    "google.type.DateTime": "timestamp",
    "google.type.TimeOfDay": "time",
    "google.type.Decimal": "decimal",
    "google.type.Money": "struct",
}
_MOST_IMPORTS = 200
_LABELS = frozenset({"optional", "required", "repeated"})


class ProtoField(NamedTuple):
    """A field of a message. `type` is spelled as in the file."""

    name: str
    type: str
    label: str


class ProtoFile:
    """The messages and enums of a file, by their names with the package."""

    def __init__(self) -> None:
        self.package = ""
        self.imports: list[str] = []
        self.messages: dict[str, list[ProtoField]] = {}
        self.enums: set[str] = set()

    def qualified(self, name: str) -> str:
        """Return the full name of a message of this file."""
        return f"{self.package}.{name}" if self.package else name

    def add(self, other: ProtoFile) -> None:
        """Add the types of an imported file."""
        self.messages |= other.messages
        self.enums |= other.enums


def parse_protobuf(
    text: str,
    message: str | None = None,
    find_import: Callable[[str, str], str | None] = lambda _name, _package: None,
) -> Iterator[DeclaredColumn]:
    """Yield the fields of a message. Raises ValueError.

    Without a name, the file must have exactly one top-level message. Only `required` fields of
    proto2 are required: for any other missing field, a reader gets the default. `find_import`
    returns the text of an imported file, given its name and the package of the file. The types of a
    file that it does not find are unknown.
    """
    proto_file = _Parser(text).parse()
    selected = _select_message(proto_file, message)
    _add_imports(proto_file, find_import)
    yield from _columns(proto_file, selected, "", ())


def _add_imports(proto_file: ProtoFile, find_import: Callable[[str, str], str | None]) -> None:
    known, waiting = set(proto_file.imports), list(proto_file.imports)
    while waiting:
        name = waiting.pop()
        text = find_import(name, proto_file.package)
        if text is None:
            continue
        try:
            imported = _Parser(text).parse()
        except ValueError as exc:
            raise ValueError(f"{name}: {exc}") from exc
        waiting.extend(each for each in imported.imports if each not in known)
        known.update(imported.imports)
        if len(known) > _MOST_IMPORTS:
            raise ValueError(f"imports more than {_MOST_IMPORTS} files")
        proto_file.add(imported)


def _select_message(proto_file: ProtoFile, wanted: str | None) -> str:
    prefix = proto_file.qualified("")
    names = [name.removeprefix(prefix) for name in proto_file.messages]
    outer = [name for name in names if "." not in name]
    if wanted is None:
        if len(outer) != 1:
            raise ValueError(f"has {len(outer)} messages; name one: {', '.join(outer) or 'none'}")
        return proto_file.qualified(outer[0])
    for name in (proto_file.qualified(wanted), wanted.removeprefix(".")):
        if name in proto_file.messages:
            return name
    raise ValueError(f"no message {wanted}; it has {', '.join(names) or 'none'}")


def _columns(
    proto_file: ProtoFile, message: str, prefix: str, inside: tuple[str, ...]
) -> Iterator[DeclaredColumn]:
    for field in proto_file.messages[message]:
        path = prefix + field.name
        nested = _find_type(proto_file, message, field.type, proto_file.messages)
        kind = _type(proto_file, message, field, nested)
        yield DeclaredColumn(
            name=path,
            type=f"array<{kind}>" if field.label == "repeated" else kind,
            required=field.label == "required",
        )
        if nested is not None and nested not in inside:
            yield from _columns(proto_file, nested, f"{path}.", (*inside, nested))


def _type(proto_file: ProtoFile, message: str, field: ProtoField, nested: str | None) -> str:
    if field.type in _SCALARS:
        return _SCALARS[field.type]
    if field.type.startswith("map<"):
        return "map"
    if nested is not None:
        return "struct"
    if _find_type(proto_file, message, field.type, proto_file.enums) is not None:
        return "text"
    return _WELL_KNOWN.get(field.type.removeprefix("."), "")  # a type of another file


def _find_type(
    proto_file: ProtoFile, message: str, name: str, known: dict[str, list[ProtoField]] | set[str]
) -> str | None:
    """Return the full name of a type in a message, searched from the innermost scope outwards.

    A name that starts with a dot is a full name.
    """
    scope = [] if name.startswith(".") else message.split(".")
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
            self._definition(self._found.qualified(""))
        return self._found

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueError("ends inside a definition")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, word: str) -> None:
        token = self._next()
        if token != word:
            raise ValueError(f"{word!r} expected, not {token!r}")

    def _definition(self, scope: str) -> None:
        match self._next():
            case "message":
                self._message(scope + self._next())
            case "enum":
                self._found.enums.add(scope + self._next())
                self._skip()
            case "package":
                self._found.package = self._next()
                self._expect(";")
            case "import":
                self._import(self._next())
            case ";":
                pass
            case _:  # syntax, option, extend, service
                self._skip()

    def _import(self, word: str) -> None:
        name = self._next() if word in ("public", "weak") else word
        self._expect(";")
        self._found.imports.append(name[1:-1])

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
        """Return whether a name and a brace follow a word such as `message`: a definition."""
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
