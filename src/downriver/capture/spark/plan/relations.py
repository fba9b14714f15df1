"""The relations that a plan's operators compute with: columns, their dependencies, what decides
rows, and recursive WITH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    direct,
    indirect,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.capture.spark.plan.tree import PlanNode


class StructField(NamedTuple):
    """A field of a struct built in the plan, and its own fields if it is such a struct."""

    deps: Deps
    fields: tuple[StructField, ...] | None = None


class PlanColumn(NamedTuple):
    """A column of a plan: what it depends on, and the expression that made it."""

    id: int
    name: str
    deps: Deps
    made_by: PlanNode | None = None
    fields: tuple[StructField, ...] | None = None


class PlanRelation:
    """Rows flowing through a plan: their columns in order, and what decides which rows there are.

    `rows` is never changed in place: operators that pass rows on share it. `ungrouped` is what
    decided on rows before they were put into groups.
    """

    __slots__ = ("_by_id", "columns", "rows", "ungrouped")

    def __init__(
        self, columns: Sequence[PlanColumn], rows: Deps = NOTHING, ungrouped: Deps | None = None
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.ungrouped = ungrouped
        self._by_id: dict[int, PlanColumn] | None = None

    def find(self, expr_id: int) -> PlanColumn | None:
        """Return a column by its id."""
        if self._by_id is None:
            self._by_id = {column.id: column for column in self.columns}
        return self._by_id.get(expr_id)

    def steered(self, deps: Deps, kind: DependencyKind) -> PlanRelation:
        """Return the same columns, in rows that `deps` decide on too."""
        return PlanRelation(self.columns, joined([self.rows, indirect(deps, kind)]))

    def value(self) -> Deps:
        """Return what depends on any of the values."""
        return joined(column.deps for column in self.columns)


def joined(parts: Iterable[Deps]) -> Deps:
    """Return the dependencies of several things as one."""
    filled = [part for part in parts if part]
    if len(filled) <= 1:
        return filled[0] if filled else NOTHING
    result = dict(filled[0])
    for part in filled[1:]:
        merge(result, part)
    return result


def side_by_side(relations: Sequence[PlanRelation]) -> PlanRelation:
    """Return the columns of all, as a join has them."""
    return PlanRelation(
        [column for relation in relations for column in relation.columns],
        joined(relation.rows for relation in relations),
    )


def one_upon_another(relations: Sequence[PlanRelation]) -> PlanRelation:
    """Return a union: by position, under the names and ids of the first."""
    if len(relations) == 1:
        return relations[0]
    columns = [
        first._replace(deps=joined([first.deps, *(other.deps for other in others)]), fields=None)
        for first, *others in zip(*(relation.columns for relation in relations), strict=False)
    ]
    return PlanRelation(columns, joined(relation.rows for relation in relations))


def seen_through_nothing(
    output: Iterable[PlanNode], inputs: Sequence[PlanRelation]
) -> PlanRelation:
    """Return the output of code that cannot be read: every column may use every input."""
    used = direct(joined(relation.value() for relation in inputs), DependencyKind.TRANSFORMATION)
    return PlanRelation(
        [PlanColumn(attribute.id, attribute.name, used) for attribute in output],
        joined(relation.rows for relation in inputs),
    )


def compared(relations: Iterable[PlanRelation]) -> Iterator[Deps]:
    """Yield what decides on rows where equal rows become one."""
    for relation in relations:
        yield indirect(relation.value(), DependencyKind.GROUP_BY)


_LOOP = "\x00loop"


def open_loop(loop: int, output: Sequence[PlanNode]) -> PlanRelation:
    """Return the rows of the loop as the loop itself sees them."""
    return PlanRelation(
        [
            PlanColumn(attribute.id, attribute.name, {_stand_in(loop, at): Certainty.EXACT})
            for at, attribute in enumerate(output)
        ]
    )


def close_loop(
    loop: int, anchor: PlanRelation, recursion: PlanRelation, ids: Sequence[int]
) -> PlanRelation:
    """Return the rows of the loop: what it starts from, and what each turn adds."""
    found = [column.deps for column in anchor.columns]
    turns = [column.deps for column in recursion.columns]
    while True:
        more = [
            joined([known, _replaced(turn, loop, found)])
            for known, turn in zip(found, turns, strict=False)
        ]
        if more == found:
            break
        found = more
    columns = [
        column._replace(id=ids[at] if at < len(ids) else column.id, deps=deps, fields=None)
        for at, (column, deps) in enumerate(zip(anchor.columns, found, strict=False))
    ]
    return PlanRelation(columns, joined([anchor.rows, _replaced(recursion.rows, loop, found)]))


def _stand_in(loop: int, at: int) -> tuple[tuple[str, ...], str, int, bool]:
    return (_LOOP, str(loop)), str(at), DependencyKind.IDENTITY, False


def _replaced(deps: Deps, loop: int, known: Sequence[Deps]) -> Deps:
    """Return dependencies on the loop's own columns as dependencies on what those depend on."""
    table = (_LOOP, str(loop))
    kept = {key: sure for key, sure in deps.items() if key[0] != table}
    parts = [kept]
    for source, column, kind, masked in deps:
        if source == table and int(column) < len(known):
            inner = known[int(column)]
            used = direct(inner, kind, masked=masked)
            parts.append(indirect(inner, kind) if kind >= DependencyKind.JOIN else used)
    return joined(parts)
