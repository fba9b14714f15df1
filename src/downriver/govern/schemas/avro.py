"""Avro schemas (`.avsc`): the fields of a record as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.trust.schemas import DeclaredColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "real",
    "double": "double",
    "bytes": "binary",
    "string": "text",
    "null": "",
}
_LOGICAL = {
    "date": "date",
    "time-millis": "time",
    "time-micros": "time",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp",
    "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
    "local-timestamp-nanos": "timestamp",
    "uuid": "uuid",
}


def parse_avro(schema: Any) -> Iterator[DeclaredColumn]:
    """Yield the fields of the record that a schema declares. Raises ValueError.

    A field is required if it has no default: a reader needs one for data without the field.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("an Avro schema of a dataset is a record")
    yield from _fields(schema, "", _named_types(schema, "", {}), ())


def _named_types(schema: Any, namespace: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return the types that a schema defines, by full and by short name."""
    if isinstance(schema, list):
        for each in schema:
            _named_types(each, namespace, known)
    if not isinstance(schema, dict):
        return known
    name = schema.get("name")
    space = str(schema.get("namespace") or namespace)
    if schema.get("type") in ("record", "enum", "fixed") and isinstance(name, str):
        known.setdefault(name, schema)
        known.setdefault(f"{space}.{name}" if space else name, schema)
    for part in ("type", "items", "values"):
        _named_types(schema.get(part), space, known)
    for field in schema.get("fields") or ():
        _named_types(field.get("type") if isinstance(field, dict) else None, space, known)
    return known


def _fields(
    record: dict[str, Any], prefix: str, known: dict[str, Any], inside: tuple[str, ...]
) -> Iterator[DeclaredColumn]:
    for field in record.get("fields") or ():
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise ValueError("a field of a record has no name")
        path = prefix + field["name"]
        kind = _resolve(field.get("type"), known)
        yield DeclaredColumn(
            name=path,
            type=_type(kind, known),
            required="default" not in field,
            nullable=isinstance(field.get("type"), list) and "null" in field["type"],
            description=str(field.get("doc") or ""),
        )
        nested = _record_in(kind, known)
        name = str(nested.get("name")) if nested else ""
        if nested and name not in inside:
            yield from _fields(nested, f"{path}.", known, (*inside, name))


def _resolve(kind: Any, known: dict[str, Any]) -> Any:
    """Return a type. A union with null resolves to the other type, a name to its definition."""
    if isinstance(kind, list):
        others = [_resolve(each, known) for each in kind if each != "null"]
        return others[0] if len(others) == 1 else others
    if isinstance(kind, str) and kind not in _PRIMITIVES:
        if kind not in known:
            raise ValueError(f"the type {kind} is not defined")
        return known[kind]
    if isinstance(kind, dict) and isinstance(kind.get("type"), (dict, list)):
        return _resolve(kind["type"], known)
    return kind


def _record_in(kind: Any, known: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record in a field, which may be the element of an array."""
    if not isinstance(kind, dict):
        return None
    if kind.get("type") == "record":
        return kind
    return _record_in(_resolve(kind["items"], known), known) if "items" in kind else None


def _type(kind: Any, known: dict[str, Any]) -> str:
    if isinstance(kind, str):
        return _PRIMITIVES[kind]
    if isinstance(kind, list):
        return "union" if kind else ""
    if not isinstance(kind, dict):
        raise ValueError("a field has no type")
    logical, base = kind.get("logicalType"), kind.get("type")
    if logical == "decimal":
        return f"decimal({kind.get('precision', 38)},{kind.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match base:
        case "record":
            return "struct"
        case "enum":
            return "text"
        case "fixed":
            return "binary"
        case "map":
            return "map"
        case "array":
            return f"array<{_type(_resolve(kind.get('items'), known), known)}>"
        case str() if base in _PRIMITIVES:
            return _PRIMITIVES[base]
        case _:
            raise ValueError(f"{base!r} is not a type of Avro")
