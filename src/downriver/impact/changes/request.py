"""Parses changes from requests and files. Malformed input is an error, never a guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.errors import InvalidRequestError
from downriver.model.changes import CHANGE_TYPES, Change, with_dataset

if TYPE_CHECKING:
    from downriver.model.verdicts import ImpactRequest


def parse_changes(value: Any, *, dataset: str = "", field: str = "changes") -> list[Change]:
    """Return a list of changes. `dataset` is the default for changes that name no dataset."""
    if not isinstance(value, list) or not value:
        raise InvalidRequestError(field, "must be a list of at least one change")
    return [_parse(item, dataset, f"{field}[{at}]") for at, item in enumerate(value)]


def _parse(item: Any, dataset: str, field: str) -> Change:
    if not isinstance(item, dict) or item.get("type") not in CHANGE_TYPES:
        given = item.get("type") if isinstance(item, dict) else item
        raise InvalidRequestError(
            field, f"{given!r} is not a type of change; use one of {', '.join(CHANGE_TYPES)}"
        )
    try:
        change: Change = msgspec.convert(item, Change)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    named = change if change.dataset else with_dataset(change, dataset)
    if not named.dataset:
        raise InvalidRequestError(field, "has no dataset")
    for part in ("column", "to"):
        if part in item and not str(getattr(named, part, "x")).strip():
            raise InvalidRequestError(field, f"{part} is empty")
    return named


def read_changes_file(path: Path) -> list[Change]:
    """Return the changes of a YAML or JSON file: a list, or a mapping by dataset."""
    content = read_yaml(path, "--changes")
    if isinstance(content, dict) and "changes" in content:
        content = content["changes"]
    if isinstance(content, dict):
        found: list[Change] = []
        for dataset, changes in content.items():
            found += parse_changes(changes, dataset=str(dataset), field=f"{path}: {dataset}")
        if found:
            return found
    return parse_changes(content, field=str(path))


def read_yaml(path: Path, field: str) -> Any:
    """Return the content of a YAML or JSON file."""
    try:
        return load_values(path.read_text("utf-8"))
    except OSError as exc:
        raise InvalidRequestError(field, f"{path}: {exc.strerror}") from exc
    except YamlError as exc:
        raise InvalidRequestError(field, f"{path}:{exc.line} is not YAML: {exc.reason}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequestError(field, f"{path} is not YAML: {exc}") from exc


_DROP = frozenset({"deletion", "delete", "drop", "removal", "remove", "table_drop", "column_drop"})
_RENAME = frozenset({"rename", "table_rename", "column_rename"})
_VALUES = frozenset({"data_quality", "logic_change", "transformation_change", "data_change"})
_COLUMN_TYPES = frozenset({"column_add", "type_change", "nullability_change"})


def changes_from_request(request: ImpactRequest, dataset: str, column: str | None) -> list[Change]:
    """Return the changes of a request. `column` is the column in its entity, if there is one."""
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
        "change_type", f"describe the change of {column}: give to, data_type or nullable"
    )
