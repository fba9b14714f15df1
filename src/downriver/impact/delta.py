"""How one dataset differs from what its readers know: the state a simulation carries along."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from downriver.impact.script import TableShape

Trail = tuple[str, ...]  # the columns that lead from the change to here


class Kind(str, Enum):
    """What has become of a column."""

    LOST = "lost"  # it is no longer there
    RENAMED = "renamed"  # it is there under another name
    UNAVAILABLE = "unavailable"  # the job that fills it fails, because of what is lost upstream
    RETYPED = "retyped"
    CHANGED = "changed"  # other values than before
    NULLABLE = "nullable"
    ADDED = "added"
    REQUIRED = "required"  # writers must fill it


ABSENT = (Kind.LOST, Kind.RENAMED)
HURT = (*ABSENT, Kind.UNAVAILABLE)
VALUES = (Kind.RETYPED, Kind.CHANGED, Kind.NULLABLE)


class Touch(NamedTuple):
    """What happened to a column: its new name or type, and the way that led here."""

    to: str = ""
    trail: Trail = ()


class Field(NamedTuple):
    """A column as the catalog knows it."""

    name: str
    type: str = ""


class Delta(msgspec.Struct):
    """Everything that is different about one dataset; columns go by their case-folded names.

    The trails say: it is `gone`; its `rows` are others; it is `stale`, because who fills it fails;
    it `may` be hurt, but no one knows which columns carry that here; it is `deprecated`.
    """

    touches: dict[tuple[str, Kind], Touch] = {}
    gone: Trail | None = None
    rows: Trail | None = None
    stale: Trail | None = None
    may: Trail | None = None
    deprecated: Trail | None = None

    def __bool__(self) -> bool:
        return bool(self.touches) or any(
            trail is not None
            for trail in (self.gone, self.rows, self.stale, self.may, self.deprecated)
        )

    def find(self, column: str, *kinds: Kind) -> Touch | None:
        """Return what happened to a column, of these kinds the first that did."""
        folded = column.casefold()
        for kind in kinds:
            touch = self.touches.get((folded, kind))
            if touch is not None:
                return touch
        return None

    def columns(self, *kinds: Kind) -> dict[str, Touch]:
        """Return the columns that something of these kinds happened to."""
        return {name: touch for (name, kind), touch in self.touches.items() if kind in kinds}

    def put(self, column: str, kind: Kind, touch: Touch) -> None:
        """Note what happened to a column."""
        self.touches.setdefault((column.casefold(), kind), touch)

    def mark(self, flag: str, trail: Trail) -> None:
        """Note something about the dataset as a whole, unless it is known already."""
        if getattr(self, flag) is None:
            setattr(self, flag, trail)

    def merge(self, other: Delta) -> None:
        """Add what another change or job does to the same dataset."""
        self.touches = {**other.touches, **self.touches}
        for name in ("gone", "rows", "stale", "may", "deprecated"):
            if getattr(other, name) is not None:
                self.mark(name, getattr(other, name))

    def same_as(self, other: Delta) -> bool:
        """Tell whether readers would notice a difference between two states; trails are no news."""
        return self._state() == other._state()

    def _state(self) -> tuple[object, ...]:
        flags = (self.gone, self.rows, self.stale, self.may, self.deprecated)
        touched = frozenset((key, touch.to) for key, touch in self.touches.items())
        return (touched, *(trail is None for trail in flags))


def shape_of(fields: tuple[Field, ...] | None, delta: Delta | None = None) -> TableShape:
    """Return the columns a dataset has, after what happened to it."""
    if delta is not None and delta.gone is not None:
        return TableShape(gone=True)
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
    types = {name: touch.to for name, touch in delta.columns(Kind.RETYPED).items()}
    return TableShape((), types, open=True, without=frozenset(spellings))


def _changed_shape(fields: tuple[Field, ...], delta: Delta) -> TableShape:
    columns: list[str] = []
    types: dict[str, str] = {}
    for field in fields:
        if delta.find(field.name, Kind.LOST) is not None:
            continue
        renamed = delta.find(field.name, Kind.RENAMED)
        retyped = delta.find(field.name, Kind.RETYPED)
        name = field.name if renamed is None else renamed.to
        columns.append(name)
        types[name.casefold()] = field.type if retyped is None else retyped.to
    for name, touch in delta.columns(Kind.ADDED).items():
        if name not in types:
            columns.append(name)
            types[name] = touch.to
    required = frozenset(delta.columns(Kind.REQUIRED))
    return TableShape(columns, types, required)
