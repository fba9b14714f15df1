"""The operators of the column algebra: pure functions from relations to relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    direct,
    indirect,
    merge,
    merge_all,
)
from downriver.columns.relations import Column, Item, Relation, Star

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OF_VALUES = frozenset({DependencyKind.WINDOW, DependencyKind.CONDITIONAL})


def project(relation: Relation, items: Sequence[Item]) -> Relation:
    """Return other columns over the same rows."""
    return Relation(items, relation.rows)


def join(relations: Sequence[Relation], condition: Deps = NOTHING) -> Relation:
    """Return the columns of all relations side by side; the condition decides the rows."""
    rows = [*(relation.rows for relation in relations), indirect(condition, DependencyKind.JOIN)]
    return Relation([item for relation in relations for item in relation.items], merge_all(rows))


def filter_rows(relation: Relation, condition: Deps) -> Relation:
    """Return the rows for which a condition holds.

    A condition on the value of a window or of a CASE filters by what that value depends on.
    """
    deps: Deps = {}
    for (table, column, kind, masked), certainty in condition.items():
        own = DependencyKind.FILTER if kind in _OF_VALUES else kind
        merge(deps, {(table, column, own, masked): certainty})
    return relation.influenced(deps, DependencyKind.FILTER)


def sort(relation: Relation, keys: Deps) -> Relation:
    """Return the rows ordered by keys."""
    return relation.influenced(keys, DependencyKind.SORT)


def aggregate(relation: Relation, keys: Deps, items: Sequence[Item]) -> Relation:
    """Return a row for each group of rows with equal keys."""
    return project(relation.influenced(keys, DependencyKind.GROUP_BY), items)


def distinct(relation: Relation, keys: Deps | None = None) -> Relation:
    """Return one row of each group with equal keys, or with equal values in every column."""
    compared = relation.value() if keys is None else keys
    return relation.influenced(compared, DependencyKind.GROUP_BY)


def union(relations: Sequence[Relation]) -> Relation:
    """Return the rows of all relations: columns by position, with the names of the first.

    A star has an unknown number of columns. Columns before the first star are counted from the
    left, those after the last star from the right, and those in between are matched by name.
    """
    first, *others = relations
    items: list[Item] = []
    for at, item in enumerate(first.items):
        if isinstance(item, Star):
            branches = (*item.branches, *(_beside_stars(other, first) for other in others))
            items.append(Star(item.table, item.dropped, branches, covered=item.covered))
            continue
        matches = [item]
        for other in others:
            match = _counterpart(item.name, at, first, other)
            if match is not None:
                matches.append(match)
        items.append(_unite(matches))
    if first.open:  # otherwise the first relation lists every column
        items += [
            Star(star.table, star.dropped, star.branches, covered=True)
            for other in others
            for star in other.stars
        ]
    return Relation(items, merge_all(relation.rows for relation in relations))


def _counterpart(name: str, at: int, first: Relation, other: Relation) -> Column | None:
    """Return the column of `other` in the position of a column of `first`."""
    before, after = _around_stars(first.items)
    own_before, own_after = _around_stars(other.items)
    from_end = at - len(first.items)
    position: int | None = None
    if at < min(before, own_before):
        position = at
    elif -from_end <= min(after, own_after) and len(other.items) + from_end >= 0:
        position = from_end
    if position is None:
        return other.find(name, Certainty.INFERRED) if other.open or first.open else None
    match = other.items[position]
    return match if isinstance(match, Column) else None


def _around_stars(items: Sequence[Item]) -> tuple[int, int]:
    """Return how many columns are before the first star, and after the last."""
    stars = [at for at, item in enumerate(items) if isinstance(item, Star)]
    return (stars[0], len(items) - stars[-1] - 1) if stars else (len(items), len(items))


def _beside_stars(other: Relation, first: Relation) -> Relation:
    """Return only the columns of a relation that are in the positions of stars."""
    before, after = (
        min(sides)
        for sides in zip(_around_stars(first.items), _around_stars(other.items), strict=True)
    )
    items = other.items[before : len(other.items) - after]
    return Relation(items, other.rows, unnamed=other.unnamed)


def _unite(columns: Sequence[Column]) -> Column:
    """Return the column of a union. If all columns are structs, their fields are united."""
    first, *others = columns
    fields = None
    if first.fields is not None and all(
        other.fields is not None and len(other.fields) == len(first.fields) for other in others
    ):
        by_position = zip(*((column.fields or {}).values() for column in columns), strict=True)
        fields = dict(zip(first.fields, map(_unite, by_position), strict=True))
    return Column(
        first.name,
        merge_all(column.deps for column in columns),
        definition=first.definition,
        fields=fields,
        number=first.number,
    )


def union_by_name(relations: Sequence[Relation]) -> Relation:
    """Return the rows of all relations: columns with the same name are one."""
    merged: dict[str, Deps] = {}
    stars: list[Star] = []
    for relation in relations:
        stars += relation.stars
        for column in relation.columns:
            merge(merged.setdefault(column.name, {}), column.deps)
    items = [Column(name, deps) for name, deps in merged.items()]
    return Relation([*items, *stars], merge_all(relation.rows for relation in relations))


def compare_rows(result: Relation, inputs: Sequence[Relation]) -> Relation:
    """Return the result of a set operation that compares rows: UNION DISTINCT, INTERSECT, EXCEPT.

    Every column of every input decides which rows remain. This includes inputs that contribute no
    values.
    """
    rows = merge_all([result.rows, *(relation.rows for relation in inputs)])
    values = merge_all(relation.value() for relation in inputs)
    return Relation(result.items, rows).influenced(values, DependencyKind.GROUP_BY)


def generate(names: Sequence[str], value: Deps) -> Relation:
    """Return the rows made from a value, as by EXPLODE; without names the columns are unknown."""
    used = direct(value, DependencyKind.TRANSFORMATION)
    rows = indirect(used, DependencyKind.JOIN)
    if not names:
        return Relation([Column("*", used)], rows, unnamed=used)
    return Relation([Column(name, used) for name in names], rows)


def opaque(relations: Sequence[Relation], columns: Iterable[Column | str]) -> Relation:
    """Return the output of code that cannot be read: each column may use every input column."""
    value = merge_all(relation.value() for relation in relations)
    used = direct(value, DependencyKind.TRANSFORMATION)
    items = [
        column.with_deps(used) if isinstance(column, Column) else Column(column, used)
        for column in columns
    ]
    return Relation(items, merge_all(relation.rows for relation in relations))
