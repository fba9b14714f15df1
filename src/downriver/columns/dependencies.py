"""Dependencies of a value or of the choice of rows.

Dependencies are a plain dictionary because they are merged millions of times. The key is (table,
column, kind, masked), the value is the certainty. Functions here never change their arguments,
except for `merge`. A result may be shared, so pass `merge` a new dictionary or a copy.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TableName: TypeAlias = tuple[str, ...]  # the parts of a name; of a dataset, namespace and name


class DependencyKind(IntEnum):
    """How an output depends on an input.

    The kinds before JOIN are DIRECT: the value of the input is used. The others are INDIRECT: the
    input only influences which value or which rows the output has.
    """

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
    """How certain a dependency is. The more certain of two equal dependencies counts."""

    EXACT = 0
    INFERRED = 1
    AMBIGUOUS = 2


DependencyKey: TypeAlias = tuple[TableName, str, int, bool]
Deps: TypeAlias = dict[DependencyKey, int]

NOTHING: Deps = {}


def source(table: TableName, column: str, certainty: int = Certainty.EXACT) -> Deps:
    """Return the dependencies of a column's own value."""
    return {(table, column, DependencyKind.IDENTITY, False): certainty}


def merge(into: Deps, more: Deps) -> None:
    """Add dependencies to a dictionary, keeping the more certain of two."""
    for key, certainty in more.items():
        certainty_before = into.get(key)
        if certainty_before is None or certainty < certainty_before:
            into[key] = certainty


def merge_all(parts: Iterable[Deps]) -> Deps:
    """Return all dependencies of several values."""
    filled = [part for part in parts if part]
    if len(filled) <= 1:
        return filled[0] if filled else NOTHING
    result = dict(filled[0])
    for part in filled[1:]:
        merge(result, part)
    return result


def direct(deps: Deps, kind: int, *, masked: bool = False) -> Deps:
    """Return the dependencies of a value computed from another by a DIRECT kind.

    INDIRECT dependencies of the other value stay as they are.
    """
    if kind == DependencyKind.IDENTITY and not masked:
        return deps
    result: Deps = {}
    for (table, column, own, own_masked), certainty in deps.items():
        passed = own if own >= DependencyKind.JOIN else max(own, kind)
        key = (table, column, passed, own_masked or (masked and own < DependencyKind.JOIN))
        certainty_before = result.get(key)
        if certainty_before is None or certainty < certainty_before:
            result[key] = certainty
    return result


def indirect(deps: Deps, kind: int) -> Deps:
    """Return the dependencies on a value that is only tested: a condition, a key, an order.

    INDIRECT dependencies keep their kind.
    """
    result: Deps = {}
    for (table, column, own, _), certainty in deps.items():
        key = (table, column, own if own >= DependencyKind.JOIN else kind, False)
        certainty_before = result.get(key)
        if certainty_before is None or certainty < certainty_before:
            result[key] = certainty
    return result


def choose(conditions: Iterable[Deps], values: Iterable[Deps]) -> Deps:
    """Return the dependencies of one of several values, chosen by conditions: CASE, IF."""
    deps: Deps = {}
    for value in values:
        merge(deps, direct(value, DependencyKind.TRANSFORMATION))
    for condition in conditions:
        merge(deps, indirect(condition, DependencyKind.CONDITIONAL))
    return deps


def first_known(values: Sequence[Deps]) -> Deps:
    """Return the dependencies of the first value that is not null: COALESCE, NVL, IFNULL.

    Every value but the last also decides whether a later one is used.
    """
    return choose(values[:-1], values)


def null_if(value: Deps, other: Deps) -> Deps:
    """Return the dependencies of a value that is null when it equals another: NULLIF."""
    return choose([value, other], [value])


def count(value: Deps) -> Deps:
    """Return the dependencies of a count of values: masked, because it contains none of them."""
    return direct(value, DependencyKind.AGGREGATION, masked=True)


def window(value: Deps, keys: Iterable[Deps]) -> Deps:
    """Return the dependencies of a value computed over a window with these keys."""
    deps = dict(direct(value, DependencyKind.TRANSFORMATION))
    for key in keys:
        merge(deps, indirect(key, DependencyKind.WINDOW))
    return deps


def weaken(deps: Deps, certainty: int) -> Deps:
    """Return dependencies that are at most this certain."""
    return {key: max(known, certainty) for key, known in deps.items()}
