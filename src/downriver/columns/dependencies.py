"""What a value or a row depends on.

Dependencies are a plain dictionary because they are merged millions of times: from (table, column,
kind, masked) to the certainty. The first three kinds carry the value (DIRECT); the others only
influence it (INDIRECT).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

TableName: TypeAlias = tuple[str, ...]


class DependencyKind(IntEnum):
    """How an output depends on an input. Below JOIN its value is used, from JOIN on it steers."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2
    JOIN = 3
    FILTER = 4
    GROUP_BY = 5
    SORT = 6
    WINDOW = 7
    CONDITIONAL = 8


class Certainty(IntEnum):
    """How sure a dependency is; of two statements the surer one counts."""

    EXACT = 0
    INFERRED = 1
    AMBIGUOUS = 2


DependencyKey: TypeAlias = tuple[TableName, str, int, bool]
Deps: TypeAlias = dict[DependencyKey, int]

NOTHING: Deps = {}


def merge(into: Deps, more: Deps) -> None:
    """Add dependencies, keeping the surer of two."""
    for key, sure in more.items():
        known = into.get(key)
        if known is None or sure < known:
            into[key] = sure


def direct(deps: Deps, kind: int, *, masked: bool = False) -> Deps:
    """Return values used through an expression of this kind; what steers goes on steering."""
    if kind == DependencyKind.IDENTITY and not masked:
        return deps
    found: Deps = {}
    for (table, column, own, own_masked), sure in deps.items():
        passed = own if own >= DependencyKind.JOIN else max(own, kind)
        key = (table, column, passed, own_masked or (masked and own < DependencyKind.JOIN))
        known = found.get(key)
        if known is None or sure < known:
            found[key] = sure
    return found


def indirect(deps: Deps, kind: int) -> Deps:
    """Return values that are looked at, not used: a condition, a key, an order."""
    found: Deps = {}
    for (table, column, own, _), sure in deps.items():
        key = (table, column, own if own >= DependencyKind.JOIN else kind, False)
        known = found.get(key)
        if known is None or sure < known:
            found[key] = sure
    return found
