"""Whether readers of one schema can read data that was written with another.

The modes are those of schema registries: *backward* means that readers of the new schema can read
old data, *forward* that readers of the old schema can read new data, *full* means both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from downriver.impact.simulate.column_types import compare_types, parse_type
from downriver.model.answers import BlindSpot
from downriver.model.trust.schemas import DeclaredColumn, SchemaIncompatibility

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from downriver.impact.simulate.column_types import TypeComparison
    from downriver.model.trust.schemas import CompatibilityMode, LogicalType

_LOGICAL_FAMILIES = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "time": "time",
}
_WIDER = {("integer", "number"), ("date", "timestamp")}
_NESTED = {
    "object": re.compile(r"(struct|record|row|object|map|json|variant)\b"),
    "array": re.compile(r"(array|list|repeated)\b|.*\[\]$"),
}


def compare_columns(old: DeclaredColumn, new: DeclaredColumn) -> TypeComparison | None:
    """Return how the type of a column changes, None if one of the types is unknown."""
    if old.type and new.type:
        return compare_types(old.type, new.type)
    if old.logical_type and new.logical_type:
        return _compare_logical(old.logical_type, new.logical_type)
    logical, written = old.logical_type or new.logical_type, old.type or new.type
    if logical is None or not written:
        return None
    return "same" if is_of_logical_type(written, logical) else "conversion"


def is_of_logical_type(text: str, logical: LogicalType) -> bool:
    """Return whether a database type is of a logical type such as `integer`."""
    if logical in ("object", "array"):
        return _NESTED[logical].match(text.strip().casefold()) is not None
    column_type = parse_type(text)
    if logical == "integer":
        return (
            column_type.family == "number"
            and column_type.name != "float"
            and column_type.scale == 0
        )
    return column_type.family == _LOGICAL_FAMILIES[logical]


def _compare_logical(old: LogicalType, new: LogicalType) -> TypeComparison:
    if old == new:
        return "same"
    if (old, new) in _WIDER:
        return "widening"
    return "narrowing" if (new, old) in _WIDER else "conversion"


class SchemaComparison:
    """Two schemas, and the columns of each by case-folded name."""

    def __init__(self, old: Iterable[DeclaredColumn], new: Iterable[DeclaredColumn]) -> None:
        self.old = {column.name.casefold(): column for column in old}
        self.new = {column.name.casefold(): column for column in new}


def check_compatibility(
    schemas: SchemaComparison, mode: CompatibilityMode
) -> list[SchemaIncompatibility]:
    """Return the columns that break readers in a mode."""
    return [
        SchemaIncompatibility(column=column, direction=direction, message=message)
        for direction in mode.directions
        for column, message in _breaks(schemas, direction)
    ]


def _breaks(
    schemas: SchemaComparison, direction: Literal["backward", "forward"]
) -> Iterator[tuple[str, str]]:
    """Yield the columns that readers of one schema cannot read in data of the other."""
    if direction == "backward":
        yield from _unreadable(schemas.new, schemas.old, _is_missed_in_old_data, "new", "old")
    else:
        yield from _unreadable(schemas.old, schemas.new, _is_missed_in_new_data, "old", "new")


def _is_missed_in_old_data(column: DeclaredColumn) -> bool:
    """Return whether old data lacks a column.

    In old rows a new column is null, unless it is required.
    """
    return column.required is True


def _is_missed_in_new_data(column: DeclaredColumn) -> bool:
    """Return whether new data lacks a column.

    A query of a dropped column fails; only an optional column may be dropped.
    """
    return column.required is not False


def _unreadable(
    readers: Mapping[str, DeclaredColumn],
    data: Mapping[str, DeclaredColumn],
    is_missed: Callable[[DeclaredColumn], bool],
    reading: str,
    written: str,
) -> Iterator[tuple[str, str]]:
    for name, column in readers.items():
        source = data.get(name)
        if source is None:
            if is_missed(column):
                yield (
                    column.name,
                    f"readers of the {reading} schema need it, and {written} data does not have it",
                )
            continue
        change = compare_columns(source, column)
        if change in ("narrowing", "conversion"):
            yield (
                column.name,
                f"readers of the {reading} schema expect {column.shown_type}, "
                f"and {written} data has {source.shown_type}",
            )


def unknown_types(
    schemas: SchemaComparison, dataset: str, *, old: str, new: str
) -> list[BlindSpot]:
    """Return the columns of both schemas whose types cannot be compared.

    `old` and `new` name the schemas.
    """
    spots = []
    for name, column in schemas.new.items():
        before = schemas.old.get(name)
        if before is None or compare_columns(before, column) is not None:
            continue
        places = [
            place
            for place, each in ((old, before), (new, column))
            if not each.type and each.logical_type is None
        ]
        message = f"the type of {name} is unknown in {' and in '.join(places)}"
        spots.append(BlindSpot(kind="type_unknown", entity=dataset, message=message))
    return spots
