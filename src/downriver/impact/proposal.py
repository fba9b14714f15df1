"""From the changes someone proposes to what becomes of each dataset first."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.impact.closed import assert_never
from downriver.impact.delta import Delta, Kind, Touch
from downriver.impact.types import compare_types
from downriver.model.answers import BlindSpot
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
    from collections.abc import Sequence

    from downriver.impact.world import World


class Proposed(NamedTuple):
    """A change to a dataset that exists."""

    change: Change
    node: int


class Proposal(NamedTuple):
    """What changes do to the datasets they are made to, and what is not known of these."""

    deltas: dict[int, Delta]
    blind_spots: list[BlindSpot]


def propose(changes: Sequence[Proposed], world: World) -> Proposal:
    """Return the state of each changed dataset; a column that no one knows is an error."""
    deltas: dict[int, Delta] = {}
    spots: list[BlindSpot] = []
    for change, node in changes:
        before = world.fields(node)
        if before is None:
            spots.append(_unknown_schema(world, node))
        _apply(change, node, deltas.setdefault(node, Delta()), world)
    return Proposal(deltas, list({spot.entity: spot for spot in spots}.values()))


def _unknown_schema(world: World, node: int) -> BlindSpot:
    return BlindSpot(
        kind="no_schema",
        entity=str(world.dataset(node).id),
        message="its columns are not all known: no event has told its schema",
    )


def _apply(change: Change, node: int, delta: Delta, world: World) -> None:
    name = world.dataset(node).id.name
    match change:
        case ColumnRename():
            _check_free(change.to, node, delta, world)
            column = _existing(change.column, node, world)
            delta.put(column, Kind.RENAMED, Touch(change.to, (f"{name}.{column}",)))
        case ColumnDrop():
            column = _existing(change.column, node, world)
            delta.put(column, Kind.LOST, Touch("", (f"{name}.{column}",)))
        case ColumnAdd():
            _add(change, node, delta, world)
        case TypeChange():
            column = _existing(change.column, node, world)
            old = change.old or _type_of(column, node, world)
            if not old or compare_types(old, change.to) != "same":
                delta.put(column, Kind.RETYPED, Touch(change.to, (f"{name}.{column}",)))
        case NullabilityChange():
            column = _existing(change.column, node, world)
            kind = Kind.NULLABLE if change.nullable else Kind.REQUIRED
            delta.put(column, kind, Touch("", (f"{name}.{column}",)))
        case TableRename() | TableDrop():
            delta.gone = (name,)
        case Deprecation():
            _deprecate(change, node, delta, world)
        case LogicChange():
            _recompute(change, node, delta, world)
        case SchemaChange():
            delta.may = (name,)
        case _:
            assert_never(change)


def _add(change: ColumnAdd, node: int, delta: Delta, world: World) -> None:
    _check_free(change.column, node, delta, world)
    trail = (f"{world.dataset(node).id.name}.{change.column}",)
    delta.put(change.column, Kind.ADDED, Touch(change.data_type, trail))
    if change.required:
        delta.put(change.column, Kind.REQUIRED, Touch("", trail))


def _recompute(change: LogicChange, node: int, delta: Delta, world: World) -> None:
    name = world.dataset(node).id.name
    for given in change.columns:
        column = _existing(given, node, world)
        delta.put(column, Kind.CHANGED, Touch("", (f"{name}.{column}",)))
    if not change.columns:
        delta.rows = (name,)


def _deprecate(change: Deprecation, node: int, delta: Delta, world: World) -> None:
    name = world.dataset(node).id.name
    if change.column:
        column = _existing(change.column, node, world)
        delta.put(column, Kind.CHANGED, Touch("", (f"{name}.{column}",)))
    else:
        delta.deprecated = (name,)


def _type_of(column: str, node: int, world: World) -> str:
    types = {field.name.casefold(): field.type for field in world.fields(node) or ()}
    return types.get(column.casefold(), "")


def _check_free(column: str, node: int, delta: Delta, world: World) -> None:
    taken = {field.name.casefold() for field in world.fields(node) or ()}
    taken -= delta.columns(Kind.LOST, Kind.RENAMED).keys()
    if column.casefold() in taken:
        name = world.dataset(node).id.name
        raise InvalidRequestError("changes", f"{name} already has a column {column!r}")


def _existing(column: str, node: int, world: World) -> str:
    """Return a column as the catalog writes it; where it knows some columns, it must be one."""
    known = world.known_columns(node)
    for name in known:
        if name.casefold() == column.casefold():
            return name
    if known:
        dataset = world.dataset(node).id.name
        near = difflib.get_close_matches(column, known, 3, 0.6)
        raise EntityNotFoundError(f"{dataset}.{column}", [f"{dataset}.{name}" for name in near])
    return column
