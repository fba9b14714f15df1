"""A change in a few words, as people ask about it: which entity, what kind, which column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.errors import InvalidRequestError
from downriver.impact.requests import parse_changes
from downriver.model.changes import CHANGE_TYPES

if TYPE_CHECKING:
    from downriver.model.changes import Change
    from downriver.model.impact_answers import ImpactRequest

_DROP = frozenset({"deletion", "delete", "drop", "removal", "remove", "table_drop", "column_drop"})
_RENAME = frozenset({"rename", "table_rename", "column_rename"})
_VALUES = frozenset({"data_quality", "logic_change", "transformation_change", "data_change"})
_COLUMN_TYPES = frozenset({"column_add", "type_change", "nullability_change"})


def request_changes(request: ImpactRequest, dataset: str, column: str | None) -> list[Change]:
    """Return the changes that a request means; `column` is the one its entity named, if it did."""
    if request.changes is not None:
        return parse_changes(request.changes, dataset=dataset)
    return parse_changes([_change(request, request.column or column)], dataset=dataset)


def _change(request: ImpactRequest, column: str | None) -> dict[str, Any]:
    kind = request.change_type.strip().lower().replace(" ", "_").replace("-", "_")
    if kind in _DROP:
        return {"type": "column_drop", "column": column} if column else {"type": "table_drop"}
    if kind in _RENAME:
        return _rename(request, column)
    if kind in _VALUES:
        return {"type": "logic_change", "columns": [column] if column else []}
    if kind == "deprecation":
        return {"type": kind, **({"column": column} if column else {})}
    if kind in _COLUMN_TYPES or (kind == "schema_change" and column):
        return _column_change(request, kind, column)
    if kind == "schema_change":
        return {"type": "schema_change"}
    words = sorted({*CHANGE_TYPES, "deletion", "data_quality"})
    raise InvalidRequestError(
        "change_type", f"{request.change_type!r} is not one of {', '.join(words)}"
    )


def _rename(request: ImpactRequest, column: str | None) -> dict[str, Any]:
    if not request.to:
        raise InvalidRequestError("to", "a rename needs the new name")
    if column:
        return {"type": "column_rename", "from": column, "to": request.to}
    return {"type": "table_rename", "to": request.to}


def _column_change(request: ImpactRequest, kind: str, column: str | None) -> dict[str, Any]:
    if not column:
        raise InvalidRequestError("column", f"{kind} needs a column")
    if kind == "column_add":
        add = {"type": kind, "column": column, "required": request.required}
        return {**add, "data_type": request.data_type or ""}
    if request.nullable is not None:
        return {"type": "nullability_change", "column": column, "nullable": request.nullable}
    if request.data_type:
        return {"type": "type_change", "column": column, "to": request.data_type}
    if request.to:
        renames = kind == "schema_change"
        name = "from" if renames else "column"
        return {
            "type": "column_rename" if renames else "type_change",
            name: column,
            "to": request.to,
        }
    raise InvalidRequestError(
        "change_type", f"say what becomes of {column}: give to, data_type or nullable"
    )
