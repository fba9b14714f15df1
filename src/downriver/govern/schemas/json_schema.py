"""JSON Schema: the properties of an object as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.trust.schemas import DeclaredColumn, LogicalType

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES: dict[str, LogicalType] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "object",
    "array": "array",
}
_FORMATS: dict[str, LogicalType] = {"date": "date", "date-time": "timestamp", "time": "time"}
_MOST_STEPS = 50


def parse_json_schema(schema: Any) -> Iterator[DeclaredColumn]:
    """Yield the properties of the object that a schema declares. Raises ValueError.

    JSON has few types, so the columns have logical types. References inside the file are followed.
    """
    root = _follow(schema, schema)
    if root.get("type") == "array":  # a file of rows
        root = _follow(root.get("items"), schema)
    if not isinstance(root.get("properties"), dict):
        raise ValueError("a JSON Schema of a dataset is an object with properties")
    yield from _properties(root, "", schema, ())


def _properties(
    schema: dict[str, Any], prefix: str, root: Any, inside: tuple[dict[str, Any], ...]
) -> Iterator[DeclaredColumn]:
    required = schema.get("required") or ()
    for name, stated in schema["properties"].items():
        target = _follow(stated, root)
        path = prefix + name
        yield DeclaredColumn(
            name=path,
            logical_type=_logical_type(target),
            required=name in required,
            nullable="null" in _kinds(target) or name not in required,
            description=str(target.get("description") or ""),
        )
        nested = _follow(target["items"], root) if isinstance(target.get("items"), dict) else target
        within = (*inside, schema)
        is_recursive = any(nested is outer for outer in within)
        if isinstance(nested.get("properties"), dict) and not is_recursive:
            yield from _properties(nested, f"{path}.", root, within)


def _follow(schema: Any, root: Any) -> dict[str, Any]:
    """Return a schema, or the target of its reference in the same file."""
    for _ in range(_MOST_STEPS):
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise ValueError("a schema is not an object")
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise ValueError(f"{reference!r} is in another file")
        schema = _at(root, reference)
    raise ValueError("references form a cycle")


def _at(root: Any, reference: str) -> Any:
    target = root
    for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or key not in target:
            raise ValueError(f"no schema at {reference}")
        target = target[key]
    return target


def _kinds(schema: dict[str, Any]) -> list[Any]:
    stated = schema.get("type")
    return [stated] if isinstance(stated, str) else list(stated or ())


def _logical_type(schema: dict[str, Any]) -> LogicalType | None:
    others = [kind for kind in _kinds(schema) if kind != "null"]
    if len(others) != 1:
        return None
    if others[0] == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    return _TYPES.get(others[0])
