"""What the operators of a plan compute with: columns, their dependencies, and what decides rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.sql.deps import NOTHING, Deps, Kind, at_least, merge, steering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.capture.spark.plan import Node


class Field(NamedTuple):
    """A field of a struct built in the plan, and its own fields if it is such a struct."""

    deps: Deps
    fields: tuple[Field, ...] | None = None


class Column(NamedTuple):
    """A column of a plan: what it depends on, and the expression that made it."""

    id: int
    name: str
    deps: Deps
    made_by: Node | None = None
    fields: tuple[Field, ...] | None = None


class Relation:
    """Rows flowing through a plan: their columns in order, and what decides which rows there are.

    `rows` is never changed in place: operators that pass rows on share it. `ungrouped` is what
    decided on rows before they were put into groups.
    """

    __slots__ = ("_by_id", "columns", "rows", "ungrouped")

    def __init__(
        self, columns: Sequence[Column], rows: Deps = NOTHING, ungrouped: Deps | None = None
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.ungrouped = ungrouped
        self._by_id: dict[int, Column] | None = None

    def find(self, expr_id: int) -> Column | None:
        """Return a column by its id."""
        if self._by_id is None:
            self._by_id = {column.id: column for column in self.columns}
        return self._by_id.get(expr_id)

    def steered(self, deps: Deps, kind: Kind) -> Relation:
        """Return the same columns, in rows that `deps` decide on too."""
        return Relation(self.columns, joined([self.rows, steering(deps, kind)]))

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


def side_by_side(relations: Sequence[Relation]) -> Relation:
    """Return the columns of all, as a join has them."""
    return Relation(
        [column for relation in relations for column in relation.columns],
        joined(relation.rows for relation in relations),
    )


def one_upon_another(relations: Sequence[Relation]) -> Relation:
    """Return a union: by position, under the names and ids of the first."""
    if len(relations) == 1:
        return relations[0]
    columns = [
        first._replace(deps=joined([first.deps, *(other.deps for other in others)]), fields=None)
        for first, *others in zip(*(relation.columns for relation in relations), strict=False)
    ]
    return Relation(columns, joined(relation.rows for relation in relations))


def seen_through_nothing(output: Iterable[Node], inputs: Sequence[Relation]) -> Relation:
    """Return the output of code that cannot be read: every column may use every input."""
    used = at_least(joined(relation.value() for relation in inputs), Kind.TRANSFORMATION)
    return Relation(
        [Column(attribute.id, attribute.name, used) for attribute in output],
        joined(relation.rows for relation in inputs),
    )


def compared(relations: Iterable[Relation]) -> Iterator[Deps]:
    """Yield what decides on rows where equal rows become one."""
    for relation in relations:
        yield steering(relation.value(), Kind.GROUP_BY)
