"""Tables whose columns code lists (CREATE TABLE), and what an edit of such a list changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from typing_extensions import assert_never

from downriver.impact.simulate.column_types import compare_types
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    Deprecation,
    LogicChange,
    NullabilityChange,
    SchemaChange,
    TableDrop,
    TableRename,
    TypeChange,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class LocatedChange(NamedTuple):
    """A change, and its place in a file."""

    change: Change
    path: str
    line: int


class TableDefinition(NamedTuple):
    """A table with the columns that code lists, in their order, and the place of the list."""

    name: str
    columns: tuple[ColumnAdd, ...]
    path: str
    line: int

    def column(self, name: str) -> ColumnAdd | None:
        """Return a column by name, in any letter case."""
        folded = name.casefold()
        return next((c for c in self.columns if c.column.casefold() == folded), None)


class DefinedTables:
    """The tables that a script defines, while its statements are applied in order."""

    def __init__(self) -> None:
        self.by_name: dict[str, TableDefinition] = {}

    def create(self, table: TableDefinition) -> None:
        """Add a table."""
        self.by_name[table.name.casefold()] = table

    def apply(self, change: Change) -> None:
        """Apply a later statement to the table that it changes, if the script defines it."""
        table = self.by_name.get(change.dataset.casefold())
        if table is None:
            return
        match change:
            case TableDrop():
                del self.by_name[table.name.casefold()]
            case TableRename():
                del self.by_name[table.name.casefold()]
                self.create(table._replace(name=change.to))
            case ColumnAdd():
                self.create(table._replace(columns=(*table.columns, change)))
            case ColumnDrop() | ColumnRename() | TypeChange() | NullabilityChange():
                changed = (_column_after(column, change) for column in table.columns)
                self.create(table._replace(columns=tuple(c for c in changed if c is not None)))
            case Deprecation() | LogicChange() | SchemaChange():
                pass
            case _:
                assert_never(change)


def _column_after(
    column: ColumnAdd, change: ColumnDrop | ColumnRename | TypeChange | NullabilityChange
) -> ColumnAdd | None:
    """Return a column after a change, None if the change drops it."""
    if column.column.casefold() != change.column.casefold():
        return column
    match change:
        case ColumnDrop():
            return None
        case ColumnRename():
            return msgspec.structs.replace(column, column=change.to)
        case TypeChange():
            return msgspec.structs.replace(column, data_type=change.to)
        case NullabilityChange():
            return msgspec.structs.replace(column, required=not change.nullable)
        case _:
            assert_never(change)


class DefinitionEdit(NamedTuple):
    """The tables that a file defines before and after an edit, by case-folded name."""

    before: Mapping[str, TableDefinition]
    after: Mapping[str, TableDefinition]

    def has_both(self, table: str) -> bool:
        """Return whether a table is defined before and after."""
        return table.casefold() in self.before and table.casefold() in self.after


def compare_definitions(edits: Sequence[DefinitionEdit]) -> Iterator[LocatedChange]:
    """Yield what the edits of all files change in the tables that they define.

    A definition that moved to another file is compared with its earlier version.
    """
    moved = {
        name: table
        for edit in edits
        for name, table in edit.after.items()
        if name not in edit.before
    }
    for edit in edits:
        for name, before in edit.before.items():
            after = edit.after.get(name) or moved.get(name)
            if after is None:
                yield LocatedChange(TableDrop(dataset=before.name), before.path, before.line)
                continue
            for change in _compare(before, after):
                yield LocatedChange(change, after.path, after.line)


def _compare(before: TableDefinition, after: TableDefinition) -> Iterator[Change]:
    name = after.name
    renamed = _find_rename(before, after)
    if renamed is not None:
        yield renamed
        before = before._replace(
            columns=tuple(
                c for one in before.columns if (c := _column_after(one, renamed)) is not None
            )
        )
    for old in before.columns:
        new = after.column(old.column)
        if new is None:
            yield ColumnDrop(dataset=name, column=old.column)
            continue
        if compare_types(old.data_type, new.data_type) != "same":
            yield TypeChange(dataset=name, column=old.column, to=new.data_type, old=old.data_type)
        if old.required != new.required:
            yield NullabilityChange(dataset=name, column=old.column, nullable=not new.required)
    for column in after.columns:
        if before.column(column.column) is None:
            yield msgspec.structs.replace(column, dataset=name)
    moved = _find_moved(before, after)
    if moved:
        yield LogicChange(dataset=name, columns=moved)  # values that are inserted by position


def _find_rename(before: TableDefinition, after: TableDefinition) -> ColumnRename | None:
    """Return the rename, if exactly one column has another name at the same position."""
    if len(before.columns) != len(after.columns):
        return None
    pairs = [
        (old, new)
        for old, new in zip(before.columns, after.columns, strict=True)
        if old.column.casefold() != new.column.casefold()
    ]
    if len(pairs) != 1:
        return None
    ((old, new),) = pairs
    same_type = compare_types(old.data_type, new.data_type) == "same"
    if not same_type or old.required != new.required:
        return None
    return ColumnRename(dataset=after.name, column=old.column, to=new.column)


def _find_moved(before: TableDefinition, after: TableDefinition) -> list[str]:
    """Return the columns of both versions whose position differs."""
    kept = [c.column for c in before.columns if after.column(c.column) is not None]
    order = [c.column for c in after.columns if before.column(c.column) is not None]
    return [old for old, new in zip(kept, order, strict=True) if old.casefold() != new.casefold()]
