"""How a dataset differs after a change, and the deltas of the proposed changes."""

from __future__ import annotations

import difflib
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
from typing_extensions import assert_never

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.impact.simulate.column_types import compare_types
from downriver.impact.simulate.script.job_script import TableShape
from downriver.model.answers import BlindSpot
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    Deprecation,
    LogicChange,
    NullabilityChange,
    Outcome,
    SchemaChange,
    TableDrop,
    TableRename,
    TypeChange,
)
from downriver.model.ids import ColumnId, EntityId
from downriver.model.verdicts import Basis, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.impact.simulate.catalog import SimulationCatalog


Trail: TypeAlias = tuple[EntityId, ...]  # the columns that lead from the change to here
Sentence: TypeAlias = tuple[str | EntityId, ...]  # text, and the entities that it names


class DeltaKind(str, Enum):
    """How a column differs."""

    LOST = "lost"  # dropped
    RENAMED = "renamed"  # renamed
    UNAVAILABLE = "unavailable"  # its job fails because an upstream column is missing
    RETYPED = "retyped"
    CHANGED = "changed"  # its values differ
    NULLABLE = "nullable"
    ADDED = "added"
    REQUIRED = "required"  # required: writers must fill it


ABSENT = (DeltaKind.LOST, DeltaKind.RENAMED)
MISSING = (*ABSENT, DeltaKind.UNAVAILABLE)
VALUES = (DeltaKind.RETYPED, DeltaKind.CHANGED, DeltaKind.NULLABLE)


class ColumnDelta(NamedTuple):
    """The difference of one column: its new name or type, and the trail from the change.

    `keeps_nulls` is true if the new values are null exactly where the old values were.
    """

    to: str = ""
    trail: Trail = ()
    keeps_nulls: bool = False


class CatalogColumn(NamedTuple):
    """A column of the catalog."""

    name: str
    type: str = ""


class Delta(msgspec.Struct):
    """All differences of one dataset. Column names are case-folded.

    The trails lead to the change that caused each state: the dataset is `removed`; its `rows`
    change; it is `stale`, because its writer fails; an effect is `possible`, in unknown columns; it
    is `deprecated`.
    """

    touches: dict[tuple[str, DeltaKind], ColumnDelta] = {}
    removed: Trail | None = None
    rows: Trail | None = None
    stale: Trail | None = None
    possible: Trail | None = None
    deprecated: Trail | None = None

    def __bool__(self) -> bool:
        return bool(self.touches) or any(
            trail is not None
            for trail in (self.removed, self.rows, self.stale, self.possible, self.deprecated)
        )

    def find(self, column: str, *kinds: DeltaKind) -> ColumnDelta | None:
        """Return the delta of a column: the first of these kinds that it has."""
        folded = column.casefold()
        for kind in kinds:
            touch = self.touches.get((folded, kind))
            if touch is not None:
                return touch
        return None

    def columns(self, *kinds: DeltaKind) -> dict[str, ColumnDelta]:
        """Return the columns with a delta of one of these kinds."""
        return {name: touch for (name, kind), touch in self.touches.items() if kind in kinds}

    def put(self, column: str, kind: DeltaKind, touch: ColumnDelta) -> None:
        """Record the difference of a column."""
        self.touches.setdefault((column.casefold(), kind), touch)

    def mark(self, flag: str, trail: Trail) -> None:
        """Record a difference of the whole dataset, unless one of this kind is recorded already."""
        if getattr(self, flag) is None:
            setattr(self, flag, trail)

    def merge(self, other: Delta) -> None:
        """Add the delta of another change or job on the same dataset."""
        for key, touch in other.touches.items():
            known = self.touches.setdefault(key, touch)
            if known.keeps_nulls and not touch.keeps_nulls:
                self.touches[key] = known._replace(keeps_nulls=False)
        for name in ("removed", "rows", "stale", "possible", "deprecated"):
            if getattr(other, name) is not None:
                self.mark(name, getattr(other, name))

    def same_as(self, other: Delta) -> bool:
        """Return whether two deltas are equal, apart from their trails."""
        return self._state() == other._state()

    def _state(self) -> tuple[object, ...]:
        flags = (self.removed, self.rows, self.stale, self.possible, self.deprecated)
        touched = frozenset(
            (key, touch.to, touch.keeps_nulls) for key, touch in self.touches.items()
        )
        return (touched, *(trail is None for trail in flags))


def shape_of(fields: tuple[CatalogColumn, ...] | None, delta: Delta | None = None) -> TableShape:
    """Return the columns of a dataset after a delta."""
    if delta is not None and delta.removed is not None:
        return TableShape(removed=True)
    if fields is None:
        return _open_shape(delta)
    if delta is None or not delta.touches:
        return TableShape(
            [field.name for field in fields],
            {field.name.casefold(): field.type for field in fields},
        )
    return _changed_shape(fields, delta)


def _open_shape(delta: Delta | None) -> TableShape:
    if delta is None:
        return TableShape(open=True)
    absent = delta.columns(*ABSENT)
    spellings = {spelling for name in absent for spelling in (name, name.upper())}
    types = {name: touch.to for name, touch in delta.columns(DeltaKind.RETYPED).items()}
    return TableShape((), types, open=True, without=frozenset(spellings))


def _changed_shape(fields: tuple[CatalogColumn, ...], delta: Delta) -> TableShape:
    columns: list[str] = []
    types: dict[str, str] = {}
    for field in fields:
        if delta.find(field.name, DeltaKind.LOST) is not None:
            continue
        renamed = delta.find(field.name, DeltaKind.RENAMED)
        retyped = delta.find(field.name, DeltaKind.RETYPED)
        name = field.name if renamed is None else renamed.to
        columns.append(name)
        types[name.casefold()] = field.type if retyped is None else retyped.to
    for name, touch in delta.columns(DeltaKind.ADDED).items():
        if name not in types:
            columns.append(name)
            types[name] = touch.to
    required = frozenset(delta.columns(DeltaKind.REQUIRED))
    return TableShape(columns, types, required)


_ORDER = {outcome: place for place, outcome in enumerate(Outcome)}


class ProcessResult(msgspec.Struct):
    """The most severe effect on a process: reason, lines of code, and deltas of its outputs.

    `note` describes other effects on its table. `data_loss` is true when its next run deletes
    values that it cannot compute again.
    """

    outcome: Outcome = Outcome.UNTOUCHED
    basis: Basis = "simulated"
    reason: Sentence = ()
    trail: Trail = ()
    references: list[Reference] = []
    outputs: dict[int, Delta] = {}
    note: str = ""
    data_loss: bool = False

    def worsen(
        self, outcome: Outcome, reason: Sentence, trail: Trail, basis: Basis | None = None
    ) -> None:
        """Record an outcome; the worst one is kept."""
        if _ORDER[outcome] < _ORDER[self.outcome]:
            self.outcome, self.reason, self.trail = outcome, reason, trail
            self.basis = basis or self.basis

    def output(self, node: int) -> Delta:
        """Return the delta of a dataset that this process fills. Callers add to it."""
        return self.outputs.setdefault(node, Delta())

    def refer(self, references: list[Reference]) -> None:
        """Add places in the code, each once."""
        self.references = list(dict.fromkeys([*self.references, *references]))


def extend_trail(trail: Trail, step: EntityId) -> Trail:
    """Return a trail with one more step."""
    return trail if trail and trail[-1] == step else (*trail, step)


class ResolvedChange(NamedTuple):
    """A change to a dataset that exists."""

    change: Change
    node: int


class InitialDeltas(NamedTuple):
    """The direct effect of changes on their datasets, and the blind spots of these datasets."""

    deltas: dict[int, Delta]
    blind_spots: list[BlindSpot]


def initial_deltas(changes: Sequence[ResolvedChange], catalog: SimulationCatalog) -> InitialDeltas:
    """Return the delta of each changed dataset. An unknown column is an error."""
    deltas: dict[int, Delta] = {}
    spots: list[BlindSpot] = []
    for change, node in changes:
        before = catalog.fields(node)
        if before is None and not isinstance(change, (TableDrop, TableRename)):
            spots.append(_unknown_schema(catalog, node))
        _apply(change, node, deltas.setdefault(node, Delta()), catalog)
    return InitialDeltas(deltas, list({spot.entity: spot for spot in spots}.values()))


def _unknown_schema(catalog: SimulationCatalog, node: int) -> BlindSpot:
    return BlindSpot(
        kind="no_schema",
        entity=str(catalog.dataset(node).id),
        message="schema unknown: no event contained a schema facet",
    )


def _apply(change: Change, node: int, delta: Delta, catalog: SimulationCatalog) -> None:
    dataset = catalog.dataset(node).id
    match change:
        case ColumnRename():
            _check_free(change.to, node, delta, catalog)
            column = _existing(change.column, node, catalog)
            delta.put(
                column, DeltaKind.RENAMED, ColumnDelta(change.to, (ColumnId(dataset, column),))
            )
        case ColumnDrop():
            column = _existing(change.column, node, catalog)
            delta.put(column, DeltaKind.LOST, ColumnDelta("", (ColumnId(dataset, column),)))
        case ColumnAdd():
            _add(change, node, delta, catalog)
        case TypeChange():
            column = _existing(change.column, node, catalog)
            old = change.old or _type_of(column, node, catalog)
            if not old or compare_types(old, change.to) != "same":
                delta.put(
                    column, DeltaKind.RETYPED, ColumnDelta(change.to, (ColumnId(dataset, column),))
                )
        case NullabilityChange():
            column = _existing(change.column, node, catalog)
            kind = DeltaKind.NULLABLE if change.nullable else DeltaKind.REQUIRED
            delta.put(column, kind, ColumnDelta("", (ColumnId(dataset, column),)))
        case TableRename() | TableDrop():
            delta.removed = (dataset,)
        case Deprecation():
            _deprecate(change, node, delta, catalog)
        case LogicChange():
            _recompute(change, node, delta, catalog)
        case SchemaChange():
            delta.possible = (dataset,)
        case _:
            assert_never(change)


def _add(change: ColumnAdd, node: int, delta: Delta, catalog: SimulationCatalog) -> None:
    _check_free(change.column, node, delta, catalog)
    trail = (ColumnId(catalog.dataset(node).id, change.column),)
    delta.put(change.column, DeltaKind.ADDED, ColumnDelta(change.data_type, trail))
    if change.required:
        delta.put(change.column, DeltaKind.REQUIRED, ColumnDelta("", trail))


def _recompute(change: LogicChange, node: int, delta: Delta, catalog: SimulationCatalog) -> None:
    dataset = catalog.dataset(node).id
    for given in change.columns:
        column = _existing(given, node, catalog)
        delta.put(column, DeltaKind.CHANGED, ColumnDelta("", (ColumnId(dataset, column),)))
    if not change.columns:
        delta.rows = (dataset,)


def _deprecate(change: Deprecation, node: int, delta: Delta, catalog: SimulationCatalog) -> None:
    dataset = catalog.dataset(node).id
    if change.column:
        column = _existing(change.column, node, catalog)
        delta.put(column, DeltaKind.CHANGED, ColumnDelta("", (ColumnId(dataset, column),)))
    else:
        delta.deprecated = (dataset,)


def _type_of(column: str, node: int, catalog: SimulationCatalog) -> str:
    types = {field.name.casefold(): field.type for field in catalog.fields(node) or ()}
    return types.get(column.casefold(), "")


def _check_free(column: str, node: int, delta: Delta, catalog: SimulationCatalog) -> None:
    taken = {field.name.casefold() for field in catalog.fields(node) or ()}
    taken -= delta.columns(DeltaKind.LOST, DeltaKind.RENAMED).keys()
    if column.casefold() in taken:
        name = catalog.dataset(node).id.name
        raise InvalidRequestError("changes", f"{name} already has a column {column!r}")


def _existing(column: str, node: int, catalog: SimulationCatalog) -> str:
    """Return a column as spelled in the catalog. A known schema must contain the column."""
    known = catalog.known_columns(node)
    for name in known:
        if name.casefold() == column.casefold():
            return name
    if known:
        dataset = catalog.dataset(node).id.name
        near = difflib.get_close_matches(column, known, 3, 0.6)
        raise EntityNotFoundError(f"{dataset}.{column}", [f"{dataset}.{name}" for name in near])
    return column
